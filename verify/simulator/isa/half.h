#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "verify/simulator/isa/special_values.h"

/// The 16-bit floating-point types: conversions from and to float, free of branches so that they vectorise.
namespace block_attention::simulator {

/// IEEE binary16.
struct Half {
    std::uint16_t bits = 0;
};

/// The upper half of a binary32.
struct BFloat16 {
    std::uint16_t bits = 0;
};

/// Exact. A NaN becomes the canonical one (measured on H200).
inline float to_float(Half value) {
    const std::uint32_t magnitude = std::uint32_t{value.bits} << 13 & 0x0FFFE000;
    const std::uint32_t sign = std::uint32_t{value.bits} << 16 & 0x80000000;
    // Read as a binary32 the value is 2^-112 times too small, also when it is subnormal.
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t special = magnitude == 0x0F800000 ? 0x7F800000 | sign : kNan32;
    return std::bit_cast<float>(magnitude < 0x0F800000 ? scaled | sign : special);
}

/// Exact, and a NaN keeps its bits: it is a shift (measured on H200).
inline float to_float(BFloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

/// To nearest, ties to even; a NaN becomes the canonical one.
inline Half to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000;
    const std::uint32_t magnitude = bits & 0x7FFFFFFF;
    const std::uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112U << 23)) >> 13;
    // 0.5 has the unit in the last place of a subnormal binary16, so that the sum is rounded like one.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
    std::uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
    result = magnitude >= 0x47800000 ? 0x7C00 : result;
    result = magnitude > 0x7F800000 ? kNan16 : result | sign;
    return {static_cast<std::uint16_t>(result)};
}

inline BFloat16 to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return {static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? kNan16 : rounded)};
}

template <typename T>
T round_to(float value);
template <>
inline Half round_to<Half>(float value) {
    return to_half(value);
}
template <>
inline BFloat16 round_to<BFloat16>(float value) {
    return to_bfloat16(value);
}

/// An exact number, value + error, rounded to a float whose last bit is set if it is not exact: rounding that float to
/// half the precision or less then gives the same as rounding the exact number once.
inline float round_to_odd(double value, double error) {
    const auto odd = [](auto bits, bool inexact, bool too_large) {
        using U = decltype(bits);
        return static_cast<U>(inexact ? (bits - (too_large ? 1 : 0)) | 1 : bits);
    };
    const bool inexact = error < 0 || error > 0;
    const double precise =
        std::bit_cast<double>(odd(std::bit_cast<std::uint64_t>(value), inexact, (error < 0) != (value < 0)));
    const auto rounded = static_cast<float>(precise);
    const bool lost = precise < rounded || precise > rounded;
    return std::bit_cast<float>(
        odd(std::bit_cast<std::uint32_t>(rounded), lost, std::fabs(static_cast<double>(rounded)) > std::fabs(precise)));
}

/// a * b + c, rounded to odd. The product of two 16-bit numbers is exact in double.
template <typename T>
float fused_multiply_add_to_odd(T a, T b, T c) {
    const double product = double{to_float(a)} * double{to_float(b)};
    const double addend = to_float(c);
    const double sum = product + addend;
    const double share = sum - product;
    const double error = (product - (sum - share)) + (addend - share);
    return round_to_odd(sum, error);
}

}  // namespace block_attention::simulator
