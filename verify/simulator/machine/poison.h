#pragma once
#include <cstdint>

namespace block_attention::simulator {

/// What a lane reads where nothing was ever written or nothing is mapped: a NaN in fp16, bf16, fp32 and fp64 alike.
inline constexpr std::uint64_t kPoison = 0x7FFD7FFD7FFD7FFD;

}  // namespace block_attention::simulator
