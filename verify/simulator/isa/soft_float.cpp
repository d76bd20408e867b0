#include "verify/simulator/isa/soft_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

namespace {

/// A binary interchange format: value = mantissa * 2^exponent with `precision` bits, one of them implicit.
struct Layout {
    int precision;
    int min_exponent;  ///< of the last bit of a subnormal number
    int max_exponent;  ///< of the last bit of the largest numbers
    unsigned bits;
};

constexpr Layout layout_of(Type type) {
    switch (type) {
        case Type::f16:
            return {11, -24, 5, 16};
        case Type::bf16:
            return {8, -133, 120, 16};
        case Type::f32:
            return {24, -149, 104, 32};
        default:
            return {53, -1074, 971, 64};
    }
}

/// Whether dropping the bits below `shift` rounds the magnitude up.
bool rounds_up(bool negative, std::uint64_t significand, int shift, Rounding rounding) {
    const std::uint64_t kept = shift >= 64 ? 0 : significand >> shift;
    const std::uint64_t dropped = shift >= 64 ? significand : significand & ((std::uint64_t{1} << shift) - 1);
    if (dropped == 0) return false;
    switch (rounding) {
        case Rounding::zero:
            return false;
        case Rounding::down:
            return negative;
        case Rounding::up:
            return !negative;
        case Rounding::nearest:
            break;
    }
    if (shift > 64) return false;
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    return dropped > half || (dropped == half && (kept & 1) != 0);
}

}  // namespace

std::uint64_t canonical_nan(Type type) {
    switch (type) {
        case Type::f16:
        case Type::bf16:
            return kNan16;
        case Type::f32:
            return kNan32;
        default:
            return kNan64;
    }
}

std::uint64_t round_to_type(bool negative, std::uint64_t significand, int exponent, Type type, Rounding rounding) {
    const Layout layout = layout_of(type);
    const std::uint64_t sign = std::uint64_t{negative} << (layout.bits - 1);
    if (significand == 0) return sign;
    // Bring the last bit where the format has it.
    const int width = 64 - std::countl_zero(significand);
    const int last = std::max(exponent + width - layout.precision, layout.min_exponent);
    const int shift = last - exponent;
    if (shift <= 0) {
        significand <<= -shift;
    } else {
        const bool up = rounds_up(negative, significand, shift, rounding);
        significand = (shift >= 64 ? 0 : significand >> shift) + (up ? 1 : 0);
    }
    // A carry out of the mantissa falls into the exponent field by itself, and a subnormal number has none.
    const int mantissa_bits = layout.precision - 1;
    const bool normal = significand >> mantissa_bits != 0;
    const auto field = static_cast<std::uint64_t>(last - layout.min_exponent + (normal ? 1 : 0));
    const std::uint64_t mantissa = significand - (normal ? std::uint64_t{1} << mantissa_bits : 0);
    const std::uint64_t magnitude = (field << mantissa_bits) + mantissa;
    const std::uint64_t infinity = static_cast<std::uint64_t>(layout.max_exponent - layout.min_exponent + 2)
                                   << mantissa_bits;
    if (magnitude >= infinity) {
        const bool to_infinity =
            rounding == Rounding::nearest || rounding == (negative ? Rounding::down : Rounding::up);
        return sign | (to_infinity ? infinity : infinity - 1);
    }
    return sign | magnitude;
}

std::uint64_t round_to_type(double value, Type type, Rounding rounding) {
    if (std::isnan(value)) return canonical_nan(type);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const bool negative = bits >> 63 != 0;
    const std::uint64_t mantissa = bits & 0x000FFFFFFFFFFFFF;
    const auto field = static_cast<int>(bits >> 52 & 0x7FF);
    if (field == 0x7FF) {
        const Layout layout = layout_of(type);
        const auto infinity = static_cast<std::uint64_t>(layout.max_exponent - layout.min_exponent + 2)
                              << (layout.precision - 1);
        return std::uint64_t{negative} << (layout.bits - 1) | infinity;
    }
    const std::uint64_t implicit = field == 0 ? 0 : std::uint64_t{1} << 52;
    return round_to_type(negative, mantissa | implicit, std::max(field, 1) - 1075, type, rounding);
}

}  // namespace block_attention::simulator
