#pragma once
#include <cstdint>

/// What kernel and host agree on: tile sizes, threads and the maps of shared and Tensor Memory of
/// blackwell_gemm_tmem_a.cu.
namespace block_attention::programs {

struct BlackwellGemmTmemA {
    static constexpr std::uint32_t kStages = 4;
    static constexpr std::uint32_t kTileM = 128;  ///< a row a thread of the worker warps
    static constexpr std::uint32_t kTileN = 128;  ///< two column blocks of B
    static constexpr std::uint32_t kTileK = 64;
    static constexpr std::uint32_t kBlockN = 64;      ///< columns of B in 128 bytes
    static constexpr std::uint32_t kPanelN = 32;      ///< columns of C a load from Tensor Memory
    static constexpr std::uint32_t kWorkerWarps = 4;  ///< 0 to 3: a warp can reach the Tensor Memory lanes of its rank
    static constexpr std::uint32_t kLoadWarp = 4;
    static constexpr std::uint32_t kMmaWarp = 5;
    static constexpr std::uint32_t kThreads = 192;
    static constexpr std::uint32_t kTmemA = kTileN;           ///< first column of A's stages; C begins at column 0
    static constexpr std::uint32_t kTmemStageA = kTileK / 2;  ///< columns: two elements in each
    static constexpr std::uint32_t kTmemColumns = 256;
    static constexpr std::uint32_t kBytesB = kTileK * kTileN * 2;
    static_assert(kTmemA + kStages * kTmemStageA == kTmemColumns);

    // NOLINTBEGIN(modernize-avoid-c-arrays): the kernel uses them, and device code has no std::array
    struct Shared {
        alignas(1024) std::uint16_t b[kStages][kTileN / kBlockN][kTileK][kBlockN];
        std::uint64_t full[kStages];     ///< a stage's operands have arrived
        std::uint64_t empty[kStages];    ///< a stage's operands have been used
        std::uint64_t accumulator_full;  ///< the sums are complete
        std::uint32_t tmem;              ///< address in Tensor Memory
    };
    // NOLINTEND(modernize-avoid-c-arrays)
};

/// Sizes of the matrices, for a kernel that reads A and writes C by plain accesses.
struct GemmShape {
    std::uint32_t m;
    std::uint32_t n;
    std::uint32_t k;
};

}  // namespace block_attention::programs
