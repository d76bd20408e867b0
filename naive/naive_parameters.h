#pragma once
#include <cstdint>

#include "reference/tensor.h"

namespace block_attention {

/// What naive.cu receives by value beside its pointers; the same struct on the host and on the GPU.
struct NaiveParameters {
    Strides q, k, v, o;
    std::int32_t head_dim;
    float scale;
};

/// The most keys a tile may have for each instantiation of the kernel: its score array lives in local memory, so a
/// block of 64 tokens should not pay for 1024.
inline constexpr int kNaiveKeys[] = {64, 256, 1024};

}  // namespace block_attention
