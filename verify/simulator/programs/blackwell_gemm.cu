// C = A B on Blackwell: fp16 factors, fp32 sums. A is M x K, B is K x N, C is M x N, all row-major. nvcc 13.0, sm_100a.
//
// Grid: x = 64 or 128 rows of C, y = 128 columns. One CTA computes a tile of C in steps of 64 along K. Against Hopper,
// one thread starts the products, and the sums lie in Tensor Memory instead of registers.
//
// role      warps  does                                              hands over by
// load      4      TMA loads of A and B, four stages ahead           full[stage]: its arrival, and the bytes
// mma       5      tcgen05.mma into Tensor Memory                    empty[stage], accumulator_full: tcgen05.commit
// epilogue  0-3    Tensor Memory, registers, shared memory, TMA store
//
// Layouts in shared memory, all in rows of 128 bytes that TMA swizzles (128B mode):
//   A  K-major:  row m holds its 64 k
//   B  MN-major: two blocks of 64 columns; in a block, row k holds its 64 n
//   C  four panels of 32 columns an epilogue warp; in a panel, row m holds its 32 floats
// Tensor Memory: column n of C in column n. 128 rows: row m in lane m. 64 rows: row m in lane m / 16 * 32 + m % 16. So
// an epilogue warp finds its quarter of the rows in the 32 lanes that it can read.
#include "optimized/ptx/instructions.cuh"
#include "verify/simulator/programs/blackwell_gemm.h"

#include "verify/simulator/programs/kernel_settings.h"
#include "verify/simulator/programs/pipeline.cuh"

namespace block_attention::programs {
using namespace ptx;
namespace {

template <typename G>
__device__ void load(typename G::Shared& shared, const CUtensorMap& a_map, const CUtensorMap& b_map,
                     const KernelSettings& settings, std::uint32_t row, std::uint32_t column, std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.empty_parity);
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
        std::uint64_t& full = shared.full[cursor.stage];
        const std::uint32_t k = step * G::kTileK;
        mbarrier_wait(shared.empty[cursor.stage], cursor.parity);
        mbarrier_arrive_expect(full, settings.expect_bytes);
        tma_load(shared.a[cursor.stage], a_map, k, row, full);
        tma_load(shared.b[cursor.stage][0], b_map, column, k, full);
        tma_load(shared.b[cursor.stage][1], b_map, column + G::kBlockN, k, full);
    }
}

template <typename G>
__device__ void multiply(typename G::Shared& shared, const KernelSettings& settings, std::uint32_t tmem,
                         std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.full_parity);
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
        mbarrier_wait(shared.full[cursor.stage], cursor.parity);
        tcgen05_fence_after();
        const std::uint64_t a = settings.a_descriptor | descriptor_address(shared.a[cursor.stage]);
        const std::uint64_t b = settings.b_descriptor | descriptor_address(shared.b[cursor.stage]);
#pragma unroll
        for (std::uint32_t i = 0; i < G::kTileK / 16; ++i) {
            // 16 k further: 32 bytes along a row of A, 16 rows of 128 bytes down a block of B; in units of 16 bytes.
            tcgen05_mma(tmem, a + i * (32 / 16), b + i * (16 * 128 / 16), settings.instruction_descriptor,
                        step > 0 || i > 0);
        }
        tcgen05_commit(shared.empty[cursor.stage]);
    }
    tcgen05_commit(shared.accumulator_full);
}

/// Columns 32 panel .. 32 panel + 31 of the warp's rows, from Tensor Memory to shared memory, swizzled: chunk c of 16
/// bytes in row m lies where chunk c ^ (m % 8) would.
__device__ void unload(std::uint32_t tmem, float (&panel)[32][32]) {
    float r[32];
    tcgen05_ld_32x32b_x32(r, tmem);
    tcgen05_wait_ld();
    const std::uint32_t m = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
        *reinterpret_cast<float4*>(&panel[m][(chunk ^ m % 8) * 4]) =
            make_float4(r[4 * chunk], r[4 * chunk + 1], r[4 * chunk + 2], r[4 * chunk + 3]);
    }
}

__device__ void unload(std::uint32_t tmem, float (&panel)[16][32]) {
    float r[16];
    tcgen05_ld_16x256b_x4(r, tmem);
    tcgen05_wait_ld();
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < 16; i += 2) {
        const std::uint32_t m = lane / 4 + i / 2 % 2 * 8;
        const std::uint32_t n = i / 4 * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(&panel[m][(n / 4 ^ m % 8) * 4 + n % 4]) = make_float2(r[i], r[i + 1]);
    }
}

/// Writes this warp's rows of C. The copy clips what lies outside of C.
template <typename G>
__device__ void store(typename G::Shared& shared, const CUtensorMap& c_map, const KernelSettings& settings,
                      std::uint32_t warp, std::uint32_t tmem, std::uint32_t row, std::uint32_t column) {
    mbarrier_wait(shared.accumulator_full, settings.accumulator_full_parity);
    tcgen05_fence_after();
#pragma unroll 1
    for (std::uint32_t panel = 0; panel < G::kTileN / G::kPanelN; ++panel) {
        unload(tmem + (warp * 32 << 16) + panel * G::kPanelN, shared.c[warp][panel]);
    }
    fence_proxy_async();
    __syncwarp();
    if (elect_one()) {
        for (std::uint32_t panel = 0; panel < G::kTileN / G::kPanelN; ++panel) {
            tma_store(c_map, column + panel * G::kPanelN, row + warp * G::kWarpRows, shared.c[warp][panel]);
        }
        bulk_commit_group();
        bulk_wait_read();
    }
}

template <typename G>
__device__ void gemm(const CUtensorMap& a_map, const CUtensorMap& b_map, const CUtensorMap& c_map,
                     const KernelSettings& settings, std::uint32_t k_steps) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<typename G::Shared*>(memory);
    const std::uint32_t warp = threadIdx.x / 32;
    const std::uint32_t row = blockIdx.x * G::kTileM;
    const std::uint32_t column = blockIdx.y * G::kTileN;

    if (threadIdx.x == 0) {
        for (std::uint32_t stage = 0; stage < G::kStages; ++stage) {
            mbarrier_init(shared.full[stage], 1);
            mbarrier_init(shared.empty[stage], 1);
        }
        mbarrier_init(shared.accumulator_full, 1);
        fence_mbarrier_init();
    }
    if (warp == G::kMmaWarp) {
        tcgen05_alloc(shared.tmem, G::kTmemColumns);
        tcgen05_relinquish_alloc_permit();
    }
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    const std::uint32_t tmem = shared.tmem;

    if (warp == G::kLoadWarp) {
        if (elect_one()) load<G>(shared, a_map, b_map, settings, row, column, k_steps);
    } else if (warp == G::kMmaWarp) {
        if (elect_one()) multiply<G>(shared, settings, tmem, k_steps);
    } else {
        store<G>(shared, c_map, settings, warp, tmem, row, column);
    }

    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (warp == G::kMmaWarp) tcgen05_dealloc(tmem, G::kTmemColumns);
}

}  // namespace

// The host finds them by name (programs.cpp).
#define BLOCK_ATTENTION_BLACKWELL_GEMM(rows)                                                                         \
    extern "C" __global__ void __launch_bounds__(BlackwellGemm<rows>::kThreads, 1)                                   \
        blackwell_gemm_m##rows(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, \
                               const __grid_constant__ CUtensorMap c_map,                                            \
                               const __grid_constant__ KernelSettings settings, std::uint32_t k_steps) {             \
        gemm<BlackwellGemm<rows>>(a_map, b_map, c_map, settings, k_steps);                                           \
    }
BLOCK_ATTENTION_BLACKWELL_GEMM(64)
BLOCK_ATTENTION_BLACKWELL_GEMM(128)

}  // namespace block_attention::programs
