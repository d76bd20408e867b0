// C = A B on Blackwell with A from Tensor Memory: bf16 factors, fp32 sums, C rounded to bf16. A is M x K, B is K x N, C
// is M x N, all row-major; K and N are multiples of 8. nvcc 13.0, sm_100a.
//
// Grid: x = 128 rows of C, y = 128 columns. One CTA computes a tile of C in steps of 64 along K. This is what the
// second product of attention does, whose A a kernel has just computed: here it is only copied.
//
// role      warps  does                                                   hands over by
// workers   0-3    A from global memory by tcgen05.st; at last C from     full[stage]: an arrival a warp
//                  Tensor Memory to global memory
// load      4      TMA loads of B, four stages ahead                      full[stage]: an arrival, and the bytes
// mma       5      tcgen05.mma                                            empty[stage], accumulator_full: commit
//
// B in shared memory: MN-major, two blocks of 64 columns; in a block, row k holds its 64 n, swizzled (128B mode).
// Tensor Memory, row m in lane m: columns 0-127 hold the sums, column n of C each; then come four stages of A, 32
// columns each, column k / 2 with k in the low half and k + 1 in the high half.
#include "optimized/ptx/instructions.cuh"
#include "verify/simulator/programs/blackwell_gemm_tmem_a.h"

#include "verify/simulator/programs/kernel_settings.h"
#include "verify/simulator/programs/pipeline.cuh"

namespace block_attention::programs {
using namespace ptx;
namespace {

using G = BlackwellGemmTmemA;

__device__ void load_b(G::Shared& shared, const CUtensorMap& b_map, const KernelSettings& settings,
                       std::uint32_t column, std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.empty_parity);
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
        std::uint64_t& full = shared.full[cursor.stage];
        const std::uint32_t k = step * G::kTileK;
        mbarrier_wait(shared.empty[cursor.stage], cursor.parity);
        mbarrier_arrive_expect(full, settings.expect_bytes);
        tma_load(shared.b[cursor.stage][0], b_map, column, k, full);
        tma_load(shared.b[cursor.stage][1], b_map, column + G::kBlockN, k, full);
    }
}

/// Copies this thread's row of A. `tmem` is the lanes of its warp.
__device__ void load_a(G::Shared& shared, const std::uint16_t* a, const KernelSettings& settings,
                       const GemmShape& shape, std::uint32_t tmem, std::uint32_t row, std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.empty_parity);
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
        std::uint32_t r[32];
#pragma unroll
        for (std::uint32_t i = 0; i < 8; ++i) {
            const std::uint32_t k = step * G::kTileK + 8 * i;
            uint4 eight = make_uint4(0, 0, 0, 0);  // beyond A, as TMA would
            if (row < shape.m && k < shape.k)
                eight = *reinterpret_cast<const uint4*>(&a[std::size_t{row} * shape.k + k]);
            r[4 * i] = eight.x;
            r[4 * i + 1] = eight.y;
            r[4 * i + 2] = eight.z;
            r[4 * i + 3] = eight.w;
        }
        mbarrier_wait(shared.empty[cursor.stage], cursor.parity);
        tcgen05_fence_after();
        tcgen05_st_32x32b_x32(tmem + G::kTmemA + cursor.stage * G::kTmemStageA, r);
        tcgen05_wait_st();
        tcgen05_fence_before();
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(shared.full[cursor.stage]);
    }
}

__device__ void multiply(G::Shared& shared, const KernelSettings& settings, std::uint32_t tmem, std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.full_parity);
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
        mbarrier_wait(shared.full[cursor.stage], cursor.parity);
        tcgen05_fence_after();
        const std::uint32_t a = tmem + G::kTmemA + cursor.stage * G::kTmemStageA;
        const std::uint64_t b = settings.b_descriptor | descriptor_address(shared.b[cursor.stage]);
#pragma unroll
        for (std::uint32_t i = 0; i < G::kTileK / 16; ++i) {
            // 16 k further: 8 columns of A, 16 rows of 128 bytes down a block of B in units of 16 bytes.
            tcgen05_mma_tmem_a(tmem, a + i * 8, b + i * (16 * 128 / 16), settings.instruction_descriptor,
                               step > 0 || i > 0);
        }
        tcgen05_commit(shared.empty[cursor.stage]);
    }
    tcgen05_commit(shared.accumulator_full);
}

/// Writes this thread's row of the tile of C.
__device__ void store(G::Shared& shared, std::uint16_t* c, const KernelSettings& settings, const GemmShape& shape,
                      std::uint32_t tmem, std::uint32_t row, std::uint32_t column) {
    mbarrier_wait(shared.accumulator_full, settings.accumulator_full_parity);
    tcgen05_fence_after();
#pragma unroll 1
    for (std::uint32_t panel = 0; panel < G::kTileN; panel += G::kPanelN) {
        float r[32];
        tcgen05_ld_32x32b_x32(r, tmem + panel);
        tcgen05_wait_ld();
#pragma unroll
        for (std::uint32_t i = 0; i < G::kPanelN; i += 8) {
            const uint4 eight = make_uint4(pack_bf16(r[i], r[i + 1]), pack_bf16(r[i + 2], r[i + 3]),
                                           pack_bf16(r[i + 4], r[i + 5]), pack_bf16(r[i + 6], r[i + 7]));
            const std::uint32_t n = column + panel + i;
            if (row < shape.m && n < shape.n) *reinterpret_cast<uint4*>(&c[std::size_t{row} * shape.n + n]) = eight;
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(G::kThreads, 1)
    blackwell_gemm_tmem_a(const std::uint16_t* a, const __grid_constant__ CUtensorMap b_map, std::uint16_t* c,
                          const __grid_constant__ KernelSettings settings, const __grid_constant__ GemmShape shape) {
    extern __shared__ __align__(1024) unsigned char memory[];
    G::Shared& shared = *reinterpret_cast<G::Shared*>(memory);
    const std::uint32_t warp = threadIdx.x / 32;
    const std::uint32_t column = blockIdx.y * G::kTileN;
    const std::uint32_t k_steps = (shape.k + G::kTileK - 1) / G::kTileK;

    if (threadIdx.x == 0) {
        for (std::uint32_t stage = 0; stage < G::kStages; ++stage) {
            mbarrier_init(shared.full[stage], 1 + G::kWorkerWarps);
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
        if (elect_one()) load_b(shared, b_map, settings, column, k_steps);
    } else if (warp == G::kMmaWarp) {
        if (elect_one()) multiply(shared, settings, tmem, k_steps);
    } else {
        const std::uint32_t row = blockIdx.x * G::kTileM + threadIdx.x;
        const std::uint32_t lanes = tmem + (warp * 32 << 16);
        load_a(shared, a, settings, shape, lanes, row, k_steps);
        store(shared, c, settings, shape, lanes, row, column);
    }

    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (warp == G::kMmaWarp) tcgen05_dealloc(tmem, G::kTmemColumns);
}

}  // namespace block_attention::programs
