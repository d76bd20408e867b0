// C = A B on Blackwell by persistent, specialised warps: bf16 factors, fp32 sums. A is M x K, B is K x N, C is M x N,
// all row-major. nvcc 13.0, sm_100a.
//
// Grid: as many CTAs as shall run at once. CTA i computes the tiles i, i + gridDim.x, ... of 128 x 128. Each role goes
// through all of them at its own pace: operands of the next tile arrive and are multiplied while the epilogue still
// writes this one. For that there are two accumulators in Tensor Memory.
//
// role      warps  does                              waits for             hands over by
// load      4      TMA loads of A and B              empty[stage]          full[stage]: its arrival, and the bytes
// mma       5      tcgen05.mma                       full[stage],          empty[stage], accumulator_full[i]: commit
//                                                    accumulator_empty[i]
// epilogue  0-3    Tensor Memory, registers, shared  accumulator_full[i]   accumulator_empty[i]: an arrival a warp
//                  memory, TMA store
//
// Layouts as in blackwell_gemm.cu. Accumulator i has columns 128 i .. 128 i + 127.
#include "optimized/ptx/instructions.cuh"
#include "verify/simulator/programs/blackwell_gemm_warp_specialized.h"

#include "verify/simulator/programs/kernel_settings.h"
#include "verify/simulator/programs/pipeline.cuh"

namespace block_attention::programs {
using namespace ptx;
namespace {

using G = BlackwellGemmWarpSpecialized;

/// Calls body(row, column) with the first row and column of each of this CTA's tiles.
template <typename Body>
__device__ __forceinline__ void for_each_tile(const TileGrid& tiles, Body body) {
#pragma unroll 1
    for (std::uint32_t tile = blockIdx.x; tile < tiles.rows * tiles.columns; tile += gridDim.x) {
        body(tile % tiles.rows * G::kTileM, tile / tiles.rows * G::kTileN);
    }
}

__device__ void load(G::Shared& shared, const CUtensorMap& a_map, const CUtensorMap& b_map,
                     const KernelSettings& settings, const TileGrid& tiles, std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.empty_parity);
    for_each_tile(tiles, [&](std::uint32_t row, std::uint32_t column) {
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
    });
}

__device__ void multiply(G::Shared& shared, const KernelSettings& settings, const TileGrid& tiles, std::uint32_t tmem,
                         std::uint32_t k_steps) {
    Cursor<G::kStages> cursor(settings.full_parity);
    Cursor<G::kAccumulators> accumulator(settings.accumulator_empty_parity);
    for_each_tile(tiles, [&](std::uint32_t, std::uint32_t) {
        mbarrier_wait(shared.accumulator_empty[accumulator.stage], accumulator.parity);
        tcgen05_fence_after();
        const std::uint32_t sums = tmem + accumulator.stage * G::kTileN;
#pragma unroll 1
        for (std::uint32_t step = 0; step < k_steps; ++step, cursor.advance()) {
            mbarrier_wait(shared.full[cursor.stage], cursor.parity);
            tcgen05_fence_after();
            const std::uint64_t a = settings.a_descriptor | descriptor_address(shared.a[cursor.stage]);
            const std::uint64_t b = settings.b_descriptor | descriptor_address(shared.b[cursor.stage]);
#pragma unroll
            for (std::uint32_t i = 0; i < G::kTileK / 16; ++i) {
                // 16 k further: 32 bytes along a row of A, 16 rows of 128 bytes down a block of B; in units of 16
                // bytes.
                tcgen05_mma(sums, a + i * (32 / 16), b + i * (16 * 128 / 16), settings.instruction_descriptor,
                            step > 0 || i > 0);
            }
            tcgen05_commit(shared.empty[cursor.stage]);
        }
        tcgen05_commit(shared.accumulator_full[accumulator.stage]);
        accumulator.advance();
    });
}

/// Writes this warp's 32 rows of every tile. `tmem` is its lanes of the first accumulator.
__device__ void store(G::Shared& shared, const CUtensorMap& c_map, const KernelSettings& settings,
                      const TileGrid& tiles, std::uint32_t warp, std::uint32_t tmem) {
    Cursor<G::kAccumulators> accumulator(settings.accumulator_full_parity);
    const std::uint32_t m = threadIdx.x % 32;
    for_each_tile(tiles, [&](std::uint32_t row, std::uint32_t column) {
        mbarrier_wait(shared.accumulator_full[accumulator.stage], accumulator.parity);
        tcgen05_fence_after();
#pragma unroll 1
        for (std::uint32_t panel = 0; panel < G::kTileN / G::kPanelN; ++panel) {
            float r[32];
            tcgen05_ld_32x32b_x32(r, tmem + accumulator.stage * G::kTileN + panel * G::kPanelN);
            tcgen05_wait_ld();
            // The 128B swizzle: chunk c of 16 bytes in row m lies where chunk c ^ (m % 8) would.
#pragma unroll
            for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
                *reinterpret_cast<float4*>(&shared.c[warp][panel][m][(chunk ^ m % 8) * 4]) =
                    make_float4(r[4 * chunk], r[4 * chunk + 1], r[4 * chunk + 2], r[4 * chunk + 3]);
            }
        }
        // The sums are out of Tensor Memory: the next but one tile may have their place.
        tcgen05_fence_before();
        fence_proxy_async();
        __syncwarp();
        if (elect_one()) {
            mbarrier_arrive(shared.accumulator_empty[accumulator.stage]);
            for (std::uint32_t panel = 0; panel < G::kTileN / G::kPanelN; ++panel) {
                tma_store(c_map, column + panel * G::kPanelN, row + warp * 32, shared.c[warp][panel]);
            }
            bulk_commit_group();
            bulk_wait_read();
        }
        __syncwarp();  // the stores have read shared memory: the next tile may overwrite it
        accumulator.advance();
    });
}

}  // namespace

extern "C" __global__ void __launch_bounds__(G::kThreads, 1)
    blackwell_gemm_warp_specialized(const __grid_constant__ CUtensorMap a_map,
                                    const __grid_constant__ CUtensorMap b_map,
                                    const __grid_constant__ CUtensorMap c_map,
                                    const __grid_constant__ KernelSettings settings,
                                    const __grid_constant__ TileGrid tiles, std::uint32_t k_steps) {
    extern __shared__ __align__(1024) unsigned char memory[];
    G::Shared& shared = *reinterpret_cast<G::Shared*>(memory);
    const std::uint32_t warp = threadIdx.x / 32;

    if (threadIdx.x == 0) {
        for (std::uint32_t stage = 0; stage < G::kStages; ++stage) {
            mbarrier_init(shared.full[stage], 1);
            mbarrier_init(shared.empty[stage], 1);
        }
        for (std::uint32_t i = 0; i < G::kAccumulators; ++i) {
            mbarrier_init(shared.accumulator_full[i], 1);
            mbarrier_init(shared.accumulator_empty[i], G::kEpilogueWarps);
        }
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
        if (elect_one()) load(shared, a_map, b_map, settings, tiles, k_steps);
    } else if (warp == G::kMmaWarp) {
        if (elect_one()) multiply(shared, settings, tiles, tmem, k_steps);
    } else {
        store(shared, c_map, settings, tiles, warp, tmem + (warp * 32 << 16));
    }

    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (warp == G::kMmaWarp) tcgen05_dealloc(tmem, G::kTmemColumns);
}

}  // namespace block_attention::programs
