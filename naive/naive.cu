// Step 2: block-diagonal attention as a beginner would write it. nvcc 13.0; see docs/step-2-naive.md.
//
// Grid: x = tile, y = head. One thread computes one query row, start to end, in three loops:
//     scores   s_j = scale * (q . k_j)
//     softmax  p_j = exp(s_j - max s), l = sum p_j
//     output   o   = (sum p_j v_j) / l
// Nothing is shared between threads, so nothing has to be synchronised.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "naive/naive_parameters.h"
#include "reference/exp2.h"
#include "reference/tiles.h"

namespace block_attention {
namespace {

// fp16 and bf16 are storage formats here: widening to fp32 is exact, and narrowing rounds once, to nearest even.
__device__ float widen(float x) { return x; }
__device__ float widen(__half x) { return __half2float(x); }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
__device__ T narrow(float x);
template <>
__device__ float narrow<float>(float x) {
    return x;
}
template <>
__device__ __half narrow<__half>(float x) {
    return __float2half_rn(x);
}
template <>
__device__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

//! [kernel]
template <typename T, int kMaxKeys>
__device__ void attend(const T* q, const T* k, const T* v, T* o, const Tile* tiles, const NaiveParameters& parameters) {
    const Tile tile = tiles[blockIdx.x];
    const std::int64_t head = blockIdx.y;
    const int row = static_cast<int>(threadIdx.x);
    if (row >= tile.length) return;  // the last tile of a sequence may be short

    // Where the tile's first row starts in each tensor. Strides are in elements and 64 bits wide: a large batch has
    // more than 2^31 elements.
    const auto origin = [&](const Strides& strides) {
        return tile.sequence * strides.sequence + head * strides.head + tile.first_row * strides.token;
    };
    q += origin(parameters.q) + row * parameters.q.token;
    k += origin(parameters.k);
    v += origin(parameters.v);
    o += origin(parameters.o) + row * parameters.o.token;

    // Scores, and their maximum. The array is indexed at run time, so it can't live in registers: the compiler puts it
    // in local memory, which is a private corner of global memory.
    float p[kMaxKeys];
    float largest = -INFINITY;
    for (int j = 0; j < tile.length; ++j) {
        float dot = 0;
        for (int d = 0; d < parameters.head_dim; ++d) {
            dot = fmaf(widen(q[d * parameters.q.dim]), widen(k[j * parameters.k.token + d * parameters.k.dim]), dot);
        }
        p[j] = parameters.scale * dot;
        largest = fmaxf(largest, p[j]);
    }

    // Subtracting the maximum changes nothing in exact arithmetic, and keeps every exponential in [0, 1].
    float sum = 0;
    for (int j = 0; j < tile.length; ++j) {
        p[j] = exp2_exact(kLog2e * (p[j] - largest));
        sum += p[j];
    }

    for (int d = 0; d < parameters.head_dim; ++d) {
        float weighted = 0;
        for (int j = 0; j < tile.length; ++j) {
            weighted = fmaf(p[j], widen(v[j * parameters.v.token + d * parameters.v.dim]), weighted);
        }
        o[d * parameters.o.dim] = narrow<T>(weighted / sum);
    }
}
//! [kernel]

}  // namespace

// One kernel a type and size of the score array. The host finds them by name (naive.cpp).
#define BLOCK_ATTENTION_NAIVE(type_name, T, keys)                                                                 \
    extern "C" __global__ void __launch_bounds__(keys) naive_##type_name##_##keys(                                \
        const T* q, const T* k, const T* v, T* o, const Tile* tiles, const __grid_constant__ NaiveParameters p) { \
        attend<T, keys>(q, k, v, o, tiles, p);                                                                    \
    }
#define BLOCK_ATTENTION_NAIVE_TYPE(type_name, T) \
    BLOCK_ATTENTION_NAIVE(type_name, T, 64)      \
    BLOCK_ATTENTION_NAIVE(type_name, T, 256)     \
    BLOCK_ATTENTION_NAIVE(type_name, T, 1024)
BLOCK_ATTENTION_NAIVE_TYPE(fp16, __half)
BLOCK_ATTENTION_NAIVE_TYPE(bf16, __nv_bfloat16)
BLOCK_ATTENTION_NAIVE_TYPE(fp32, float)

}  // namespace block_attention
