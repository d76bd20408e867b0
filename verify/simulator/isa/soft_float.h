#pragma once
#include <cstdint>

#include "verify/simulator/isa/rounding.h"
#include "verify/simulator/isa/types.h"

namespace block_attention::simulator {

/// The bits of (-1)^negative * significand * 2^exponent, rounded once to a floating-point type: f16, bf16, f32 or f64.
/// Overflow gives infinity or the largest finite number, as the rounding says.
std::uint64_t round_to_type(bool negative, std::uint64_t significand, int exponent, Type type, Rounding rounding);

/// The same for a number held in a double; infinities keep their sign, a NaN becomes the type's canonical one.
std::uint64_t round_to_type(double value, Type type, Rounding rounding);

/// The NaN that arithmetic gives (measured on H200).
std::uint64_t canonical_nan(Type type);

}  // namespace block_attention::simulator
