#pragma once
#include <bit>
#include <cmath>

#include "verify/simulator/isa/special_values.h"

/// What .ftz makes of fp32 results.
namespace block_attention::simulator {

/// A power of two large enough that a float's result times it, if the result is near the least normal number, is normal
/// and rounded as if exponents had no limit.
inline constexpr float kFlushScale = 0x1p24F;

/// A result becomes zero if it is subnormal, or would be but for the limit of the exponent: a product just below the
/// least normal number, which the subnormal numbers' coarser grid rounds up to it, is flushed (measured on H200).
/// `Operation::scaled`, where there is one, gives the result times kFlushScale; without it the result is exact where it
/// is that small, as sums are.
template <typename Operation, typename... T>
float flush_result(float result, T... operands) {
    constexpr float kLeastNormal = 0x1p-126F;
    bool vanishes = std::fabs(result) < kLeastNormal;
    if constexpr (requires { Operation::scaled(operands...); }) {
        vanishes = vanishes || (std::fabs(result) == kLeastNormal &&
                                std::fabs(Operation::scaled(operands...)) < kLeastNormal * kFlushScale);
    }
    return vanishes ? std::copysign(0.0F, result) : result;
}

/// a * b * kFlushScale, for a product near the least normal number: the smaller factor can bear the scale.
inline float scaled_product(float a, float b) {
    const bool small = std::fabs(a) < 1;
    return (a * (small ? kFlushScale : 1.0F)) * (b * (small ? 1.0F : kFlushScale));
}

inline float canonical(float value) { return value != value ? std::bit_cast<float>(kNan32) : value; }

/// mul.ftz.f32.
inline float multiply_flushed(float a, float b) {
    struct Product {
        static float scaled(float x, float y) { return scaled_product(x, y); }
    };
    return flush_result<Product>(canonical(flush(a) * flush(b)), flush(a), flush(b));
}

}  // namespace block_attention::simulator
