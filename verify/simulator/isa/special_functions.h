#pragma once
#include <cstdint>

/// The approximations of the special-function unit whose bits are known, on the bit patterns of floats.
namespace block_attention::simulator {

/// ex2.approx.ftz.f32 (measured on H200).
std::uint32_t exp2_approximation_ftz(std::uint32_t x);

/// ex2.approx.f32: below -126 the square of 2^(x / 2), so that results become subnormal (measured on H200).
std::uint32_t exp2_approximation(std::uint32_t x);

/// rcp.approx.ftz.f32 (measured on H200).
std::uint32_t reciprocal_approximation_ftz(std::uint32_t x);

}  // namespace block_attention::simulator
