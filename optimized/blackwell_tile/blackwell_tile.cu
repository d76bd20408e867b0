// Block-diagonal attention with the fifth-generation tensor core, as plain as it can be. nvcc 13.0, sm_100a; see
// docs/step-blackwell-tile.md.
//
// Grid: x = tile, y = head. One CTA of four warps computes a tile, one step after the other:
//
// step                         who              handed over by
// 1. Q, K, V to shared memory  thread 0: TMA    loaded: the bytes
// 2. S = Q K^T                 thread 0: mma    scores_done: commit
// 3. P = exp(S - max), sums    a thread a row   wait::st, then __syncthreads
// 4. O = P V                   thread 0: mma    output_done: commit
// 5. O / sum to shared memory  a thread a row   fence.proxy.async, then __syncthreads
// 6. O to global memory        thread 0: TMA
//
// S and O live in Tensor Memory, P as well: written there it is the A operand of step 4 without a detour over shared
// memory, which would cost a swizzle, a proxy fence and its bandwidth. With 64 rows the tensor core keeps row r in lane
// r / 16 * 32 + r % 16, so that half of each warp's threads have a row and the others only come along.
#include "optimized/blackwell_tile/blackwell_tile.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "optimized/ptx/instructions.cuh"
#include "reference/exp2.h"
#include "reference/tiles.h"

namespace block_attention {
using namespace ptx;
namespace {

// Matrix descriptors (PTX ISA 9.7.16.4.1) but for the address: 128-byte swizzle, version 1, 1024 bytes from 8 rows to
// the next 8. For V, whose rows are keys, the leading offset is that from 64 columns to the next 64.
constexpr std::uint64_t kDescriptor = std::uint64_t{2} << 61 | std::uint64_t{1} << 46 | std::uint64_t{1024 >> 4} << 32;

template <int kRows, int kDim>
constexpr std::uint64_t kDescriptorV =
    kDescriptor | std::uint64_t{BlackwellTileLayout<kRows, kDim>::kBlockBytes >> 4} << 16;

/// Instruction descriptor (PTX ISA 9.7.16.4.2): fp32 sums, M and N, B transposed where its rows are K.
template <typename T>
__device__ constexpr std::uint32_t instruction(int m, int n, bool transpose_b) {
    const std::uint32_t type = sizeof(T) == 2 && !T::kFp16 ? 1 : 0;
    return 1U << 4 | type << 7 | type << 10 | (transpose_b ? 1U << 16 : 0) | static_cast<std::uint32_t>(n / 8) << 17 |
           static_cast<std::uint32_t>(m / 16) << 24;
}

struct Fp16 {
    static constexpr bool kFp16 = true;
    std::uint16_t bits;
    static __device__ std::uint32_t pack(float low, float high) { return pack_fp16(low, high); }
};

struct Bf16 {
    static constexpr bool kFp16 = false;
    std::uint16_t bits;
    static __device__ std::uint32_t pack(float low, float high) { return pack_bf16(low, high); }
};

/// What the softmax needs of a row: its probabilities, not yet divided, and their sum.
template <int kRows>
struct Row {
    float p[kRows];
    float sum;
};

//! [softmax]
/// Turns the row's scores into probabilities. Keys beyond the tile's end have none.
template <int kRows>
__device__ void softmax(Row<kRows>& row, int keys, float scale) {
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
        row.p[j] = j < keys ? scale * row.p[j] : -INFINITY;
        largest = fmaxf(largest, row.p[j]);
    }
    row.sum = 0;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
        row.p[j] = exp2_exact(kLog2e * (row.p[j] - largest));
        row.sum += row.p[j];
    }
}
//! [softmax]

/// Loads columns `first` to `first` + kCount - 1 of this thread's lane.
template <int kCount>
__device__ void load_columns(float* to, std::uint32_t address) {
#pragma unroll
    for (int i = 0; i < kCount; i += 32) {
        float part[32];
        tcgen05_ld_32x32b_x32(part, address + static_cast<std::uint32_t>(i));
        tcgen05_wait_ld();
#pragma unroll
        for (int j = 0; j < 32; ++j) to[i + j] = part[j];
    }
}

//! [kernel]
template <typename T, int kRows, int kDim>
__device__ void attend(const CUtensorMap& q_map, const CUtensorMap& k_map, const CUtensorMap& v_map,
                       const CUtensorMap& o_map, std::uint16_t* o, const Tile* tiles,
                       const BlackwellTileParameters& parameters) {
    using L = BlackwellTileLayout<kRows, kDim>;
    extern __shared__ __align__(1024) unsigned char memory[];
    typename L::Shared& shared = *reinterpret_cast<typename L::Shared*>(memory);
    const Tile tile = tiles[blockIdx.x];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto first_row = static_cast<std::int32_t>(tile.first_row);
    const auto head = static_cast<std::int32_t>(blockIdx.y);
    // In a jagged problem all sequences share one axis, on which first_row counts.
    const std::int32_t sequence = parameters.o.sequence == 0 ? 0 : tile.sequence;

    // This thread's row of the tile, and whether it has one.
    const bool has_row = kRows == 128 || lane < 16;
    const int row = kRows == 128 ? static_cast<int>(threadIdx.x) : warp * 16 + lane % 16;

    if (threadIdx.x == 0) {
        mbarrier_init(shared.loaded, 1);
        mbarrier_init(shared.scores_done, 1);
        mbarrier_init(shared.output_done, 1);
        fence_mbarrier_init();
    }
    if (warp == 0) {
        tcgen05_alloc(shared.tensor_memory, L::kColumns);
        tcgen05_relinquish_alloc_permit();
    }
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    const std::uint32_t scores = shared.tensor_memory + L::kScores;
    const std::uint32_t output = shared.tensor_memory + L::kOutput;
    const auto own_lanes = static_cast<std::uint32_t>(warp * 32) << 16;

    // 1. The tile's rows of Q, K and V. A short tile also gets rows of its neighbours.
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(shared.loaded, 3 * L::kMatrixBytes);
        for (int block = 0; block < L::kBlocks; ++block) {
            const std::int32_t column = block * L::kBlockColumns;
            const int at = block * L::kBlockBytes;
            tma_load(shared.q + at, q_map, column, first_row, head, sequence, shared.loaded);
            tma_load(shared.k + at, k_map, column, first_row, head, sequence, shared.loaded);
            tma_load(shared.v + at, v_map, column, first_row, head, sequence, shared.loaded);
        }
    }
    mbarrier_wait(shared.loaded, 0);

    // A short tile's other rows become zeros: a neighbour's row may hold an infinity or a NaN, which times a
    // probability of 0 is a NaN.
    if (tile.length < kRows) {
        for (int block = 0; block < 3 * L::kBlocks; ++block) {  // of q, k and v, which lie side by side
            auto* rows = reinterpret_cast<uint4*>(shared.q + block * L::kBlockBytes);
            for (int i = tile.length * 8 + static_cast<int>(threadIdx.x); i < kRows * 8; i += L::kThreads) {
                rows[i] = make_uint4(0, 0, 0, 0);
            }
        }
        fence_proxy_async();
        __syncthreads();
    }

    // 2. S = Q K^T, 16 elements of the head dim at a time.
    if (threadIdx.x == 0) {
        tcgen05_fence_after();
#pragma unroll
        for (int i = 0; i < kDim / 16; ++i) {
            const int at = i / 4 * L::kBlockBytes + i % 4 * 32;
            tcgen05_mma(scores, kDescriptor | descriptor_address(shared.q + at),
                        kDescriptor | descriptor_address(shared.k + at), instruction<T>(kRows, kRows, false), i > 0);
        }
        tcgen05_commit(shared.scores_done);
    }
    mbarrier_wait(shared.scores_done, 0);
    tcgen05_fence_after();

    // 3. The softmax of this thread's row, and P in the place of S.
    Row<kRows> own;
    load_columns<kRows>(own.p, scores + own_lanes);
    std::uint32_t packed[kRows / 2];
    if (has_row) {
        softmax(own, tile.length, parameters.scale);
#pragma unroll
        for (int j = 0; j < kRows / 2; ++j) packed[j] = T::pack(own.p[2 * j], own.p[2 * j + 1]);
    } else {
        own.sum = 1;
#pragma unroll
        for (int j = 0; j < kRows / 2; ++j) packed[j] = 0;
    }
#pragma unroll
    for (int j = 0; j < kRows / 2; j += 32) {
        std::uint32_t part[32];
#pragma unroll
        for (int i = 0; i < 32; ++i) part[i] = packed[j + i];
        tcgen05_st_32x32b_x32(scores + own_lanes + static_cast<std::uint32_t>(j), part);
    }
    tcgen05_wait_st();
    tcgen05_fence_before();
    __syncthreads();

    // 4. O = P V, 16 keys at a time: 8 columns of P, 16 rows of 128 bytes of V.
    if (threadIdx.x == 0) {
        tcgen05_fence_after();
#pragma unroll
        for (int i = 0; i < kRows / 16; ++i) {
            tcgen05_mma_tmem_a(output, scores + static_cast<std::uint32_t>(i) * 8,
                               kDescriptorV<kRows, kDim> | descriptor_address(shared.v + i * 16 * 128),
                               instruction<T>(kRows, kDim, true), i > 0);
        }
        tcgen05_commit(shared.output_done);
    }
    mbarrier_wait(shared.output_done, 0);
    tcgen05_fence_after();

    // 5. The row of O, 8 elements at a time: into Q's place for the tensor copy, or, of a short tile, to where it
    // belongs.
    const bool full = tile.length == kRows;
    std::uint16_t* o_row = o + tile.sequence * parameters.o.sequence + head * parameters.o.head +
                           (tile.first_row + row) * parameters.o.token;
#pragma unroll 1
    for (int column = 0; column < kDim; column += 32) {
        float part[32];
        load_columns<32>(part, output + own_lanes + static_cast<std::uint32_t>(column));
        if (!has_row || row >= tile.length) continue;
#pragma unroll
        for (int i = 0; i < 32; i += 8) {
            std::uint32_t words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) words[w] = T::pack(part[i + 2 * w] / own.sum, part[i + 2 * w + 1] / own.sum);
            const uint4 eight = make_uint4(words[0], words[1], words[2], words[3]);
            const int chunk = (column + i) / 8;  // of 16 bytes; the swizzle swaps the 8 of a row
            unsigned char* place = shared.q + chunk / 8 * L::kBlockBytes + row * 128 + ((chunk % 8 ^ row % 8) * 16);
            *reinterpret_cast<uint4*>(full ? place : reinterpret_cast<unsigned char*>(o_row + column + i)) = eight;
        }
    }

    // 6. A full tile leaves as it came.
    fence_proxy_async();
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (threadIdx.x == 0 && full) {
        for (int block = 0; block < L::kBlocks; ++block) {
            tma_store(o_map, block * L::kBlockColumns, first_row, head, sequence, shared.q + block * L::kBlockBytes);
        }
        bulk_commit_group();
        bulk_wait_read();
    }
    if (warp == 0) {
        __syncwarp();
        tcgen05_dealloc(shared.tensor_memory, L::kColumns);
    }
}
//! [kernel]

}  // namespace

#define BLOCK_ATTENTION_BLACKWELL_TILE(type_name, T, rows, dim)                                             \
    extern "C" __global__ void __launch_bounds__(128) blackwell_tile_##type_name##_##rows##_##dim(          \
        const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,                       \
        const __grid_constant__ CUtensorMap v, const __grid_constant__ CUtensorMap o_map, std::uint16_t* o, \
        const Tile* tiles, const __grid_constant__ BlackwellTileParameters parameters) {                    \
        attend<T, rows, dim>(q, k, v, o_map, o, tiles, parameters);                                         \
    }
#define BLOCK_ATTENTION_BLACKWELL_TILE_TYPE(type_name, T) \
    BLOCK_ATTENTION_BLACKWELL_TILE(type_name, T, 64, 64)  \
    BLOCK_ATTENTION_BLACKWELL_TILE(type_name, T, 64, 128) \
    BLOCK_ATTENTION_BLACKWELL_TILE(type_name, T, 128, 64) \
    BLOCK_ATTENTION_BLACKWELL_TILE(type_name, T, 128, 128)
BLOCK_ATTENTION_BLACKWELL_TILE_TYPE(fp16, Fp16)
BLOCK_ATTENTION_BLACKWELL_TILE_TYPE(bf16, Bf16)

}  // namespace block_attention
