#pragma once
#include <cstdint>

/// What kernel and host agree on: tile sizes, threads and the map of shared memory of hopper_gemm.cu and
/// hopper_gemm_cluster.cu.
namespace block_attention::programs {

struct HopperGemm {
    static constexpr std::uint32_t kStages = 4;
    static constexpr std::uint32_t kTileM = 128;    ///< 64 rows of C a consumer warpgroup
    static constexpr std::uint32_t kTileN = 128;    ///< two column blocks of B
    static constexpr std::uint32_t kTileK = 64;     ///< 128 bytes of A: the span of the swizzle
    static constexpr std::uint32_t kBlockN = 64;    ///< columns of B in 128 bytes
    static constexpr std::uint32_t kPanelN = 32;    ///< columns of C in 128 bytes
    static constexpr std::uint32_t kConsumers = 2;  ///< warpgroups 0 and 1
    static constexpr std::uint32_t kProducerWarp = 8;
    static constexpr std::uint32_t kThreads = 288;
    static constexpr std::uint32_t kClusterSize = 2;  ///< of hopper_gemm_cluster.cu
    static constexpr std::uint32_t kBytesA = kTileM * kTileK * 2;
    static constexpr std::uint32_t kBytesB = kTileK * kTileN * 2;

    // NOLINTBEGIN(modernize-avoid-c-arrays): the kernel uses them, and device code has no std::array
    struct Shared {
        alignas(1024) std::uint16_t a[kStages][kTileM][kTileK];
        std::uint16_t b[kStages][kTileN / kBlockN][kTileK][kBlockN];
        float c[kConsumers][kTileN / kPanelN][64][kPanelN];
        std::uint64_t full[kStages];   ///< a stage's operands have arrived
        std::uint64_t empty[kStages];  ///< a stage's operands have been used
    };
    // NOLINTEND(modernize-avoid-c-arrays)
};

}  // namespace block_attention::programs
