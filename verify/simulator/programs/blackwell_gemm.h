#pragma once
#include <cstdint>

/// What kernel and host agree on: tile sizes, threads and the map of shared memory of blackwell_gemm.cu.
namespace block_attention::programs {

/// `kRows` rows of C a tile: 64 or 128, as many as a tcgen05.mma has.
template <std::uint32_t kRows>
struct BlackwellGemm {
    static constexpr std::uint32_t kStages = 4;
    static constexpr std::uint32_t kTileM = kRows;
    static constexpr std::uint32_t kTileN = 128;        ///< two column blocks of B
    static constexpr std::uint32_t kTileK = 64;         ///< 128 bytes of A: the span of the swizzle
    static constexpr std::uint32_t kBlockN = 64;        ///< columns of B in 128 bytes
    static constexpr std::uint32_t kPanelN = 32;        ///< columns of C in 128 bytes
    static constexpr std::uint32_t kEpilogueWarps = 4;  ///< 0 to 3: a warp can read the Tensor Memory lanes of its rank
    static constexpr std::uint32_t kLoadWarp = 4;
    static constexpr std::uint32_t kMmaWarp = 5;
    static constexpr std::uint32_t kThreads = 192;
    static constexpr std::uint32_t kWarpRows = kTileM / kEpilogueWarps;
    static constexpr std::uint32_t kTmemColumns = kTileN;
    static constexpr std::uint32_t kBytesA = kTileM * kTileK * 2;
    static constexpr std::uint32_t kBytesB = kTileK * kTileN * 2;

    // NOLINTBEGIN(modernize-avoid-c-arrays): the kernel uses them, and device code has no std::array
    struct Shared {
        alignas(1024) std::uint16_t a[kStages][kTileM][kTileK];
        std::uint16_t b[kStages][kTileN / kBlockN][kTileK][kBlockN];
        float c[kEpilogueWarps][kTileN / kPanelN][kWarpRows][kPanelN];
        std::uint64_t full[kStages];     ///< a stage's operands have arrived
        std::uint64_t empty[kStages];    ///< a stage's operands have been used
        std::uint64_t accumulator_full;  ///< the sums are complete
        std::uint32_t tmem;              ///< the accumulator's address in Tensor Memory
    };
    // NOLINTEND(modernize-avoid-c-arrays)
};

}  // namespace block_attention::programs
