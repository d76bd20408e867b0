#pragma once
#include <cstdint>

namespace block_attention::programs {

/// Where a thread stands in a ring of stages: the next stage, and the parity of the phase to wait for there.
template <std::uint32_t kStages>
struct Cursor {
    std::uint32_t parity;
    std::uint32_t stage = 0;

    __device__ __forceinline__ explicit Cursor(std::uint32_t first_parity) : parity(first_parity) {}
    __device__ __forceinline__ void advance() {
        if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

}  // namespace block_attention::programs
