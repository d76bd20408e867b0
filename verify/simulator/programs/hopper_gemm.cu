// C = A B on Hopper: bf16 factors, fp32 sums. A is M x K, B is K x N, C is M x N, all row-major. nvcc 13.0, sm_90a.
//
// Grid: x = 128 rows of C, y = 128 columns. One CTA computes a tile of C in steps of 64 along K.
//
// role        warps  does                                          hands over by
// producer    8      TMA loads of A and B, four stages ahead       full[stage]:  its arrival, and the bytes
// consumers   0-7    two warpgroups, 64 rows each: wgmma, then     empty[stage]: eight warps arrive
//                    C through shared memory and a TMA store
//
// Layouts in shared memory, all in rows of 128 bytes that TMA swizzles (128B mode):
//   A  K-major:  row m holds its 64 k
//   B  MN-major: two blocks of 64 columns; in a block, row k holds its 64 n
//   C  four panels of 32 columns a warpgroup; in a panel, row m holds its 32 floats
#include "optimized/ptx/instructions.cuh"
#include "verify/simulator/programs/hopper_gemm.h"
#include "verify/simulator/programs/kernel_settings.h"
#include "verify/simulator/programs/pipeline.cuh"

namespace block_attention::programs {
using namespace ptx;
namespace {

using G = HopperGemm;

__device__ void produce(G::Shared& shared, const CUtensorMap& a_map, const CUtensorMap& b_map,
                        const KernelSettings& settings, std::uint32_t row, std::uint32_t column,
                        std::uint32_t k_steps) {
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

/// Sums over all of K. `group` is the warpgroup, which has rows 64 group .. 64 group + 63 of the tile.
__device__ void multiply(G::Shared& shared, const KernelSettings& settings, std::uint32_t group, std::uint32_t k_steps,
                         float (&sums)[64]) {
    Cursor<G::kStages> cursor(settings.full_parity);
    std::uint32_t previous = 0;
#pragma unroll 1
    for (std::uint32_t step = 0; step < k_steps; ++step) {
        mbarrier_wait(shared.full[cursor.stage], cursor.parity);
        const std::uint64_t a = settings.a_descriptor | descriptor_address(shared.a[cursor.stage][64 * group]);
        const std::uint64_t b = settings.b_descriptor | descriptor_address(shared.b[cursor.stage]);
        wgmma_fence();
#pragma unroll
        for (std::uint32_t i = 0; i < G::kTileK / 16; ++i) {
            // 16 k further: 32 bytes along a row of A, 16 rows of 128 bytes down a block of B; in units of 16 bytes.
            wgmma_m64n128k16_bf16(sums, a + i * (32 / 16), b + i * (16 * 128 / 16), step > 0 || i > 0);
        }
        wgmma_commit_group();
        // This step's products may still run; those of the step before are done, so its stage is free.
        wgmma_wait_group<1>();
        if (step > 0 && threadIdx.x % 32 == 0) mbarrier_arrive(shared.empty[previous]);
        previous = cursor.stage;
        cursor.advance();
    }
    wgmma_wait_group<0>();
}

/// Writes the warpgroup's 64 rows of C: registers, shared memory, TMA. The copy clips what lies outside of C.
__device__ void store(G::Shared& shared, const CUtensorMap& c_map, std::uint32_t group, std::uint32_t row,
                      std::uint32_t column, const float (&sums)[64]) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t first = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (std::uint32_t i = 0; i < 64; i += 2) {
        const std::uint32_t m = first + i / 2 % 2 * 8;
        const std::uint32_t n = i / 4 * 8 + lane % 4 * 2;
        // The 128B swizzle: chunk c of 16 bytes in row m lies where chunk c ^ (m % 8) would.
        const std::uint32_t chunk = n % G::kPanelN / 4 ^ m % 8;
        auto* const to = reinterpret_cast<float2*>(&shared.c[group][n / G::kPanelN][m][chunk * 4 + n % 4]);
        *to = make_float2(sums[i], sums[i + 1]);
    }
    fence_proxy_async();
    named_barrier(1 + group, 128);
    if (threadIdx.x % 128 < 32 && elect_one()) {
        for (std::uint32_t panel = 0; panel < G::kTileN / G::kPanelN; ++panel) {
            tma_store(c_map, column + panel * G::kPanelN, row + 64 * group, shared.c[group][panel]);
        }
        bulk_commit_group();
        bulk_wait_read();
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(G::kThreads, 1)
    hopper_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                const __grid_constant__ CUtensorMap c_map, const __grid_constant__ KernelSettings settings,
                std::uint32_t k_steps) {
    extern __shared__ __align__(1024) unsigned char memory[];
    G::Shared& shared = *reinterpret_cast<G::Shared*>(memory);
    const std::uint32_t warp = threadIdx.x / 32;
    const std::uint32_t row = blockIdx.x * G::kTileM;
    const std::uint32_t column = blockIdx.y * G::kTileN;

    if (threadIdx.x == 0) {
        for (std::uint32_t stage = 0; stage < G::kStages; ++stage) {
            mbarrier_init(shared.full[stage], 1);
            mbarrier_init(shared.empty[stage], G::kConsumers * 4);
        }
        fence_mbarrier_init();
    }
    __syncthreads();

    if (warp == G::kProducerWarp) {
        if (elect_one()) produce(shared, a_map, b_map, settings, row, column, k_steps);
    } else {
        float sums[64];
        multiply(shared, settings, warp / 4, k_steps, sums);
        store(shared, c_map, warp / 4, row, column, sums);
    }
}

}  // namespace block_attention::programs
