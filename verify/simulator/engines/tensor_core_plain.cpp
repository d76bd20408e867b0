#include "verify/simulator/engines/tensor_core_plain.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace block_attention::simulator {

namespace {

/// Bits of a term that are kept below the common exponent, and how far that exponent may fall below the accumulator's
/// least one (both measured on H200).
constexpr int kFractionBits = 25;
constexpr int kExponentsBelowLeast = 7;

/// A sign, an exponent and a fraction as in IEEE 754, above some bits that are ignored.
struct Format {
    int exponent_bits = 0;
    int fraction_bits = 0;
    int ignored_bits = 0;
    bool rounds_to_nearest = false;

    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr int least_exponent() const { return 1 - bias(); }
    constexpr std::uint32_t sign() const { return 1U << (exponent_bits + fraction_bits); }
    constexpr std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << fraction_bits; }
    constexpr std::uint32_t canonical_nan() const { return sign() - 1; }
};

constexpr Format kF16{.exponent_bits = 5, .fraction_bits = 10, .rounds_to_nearest = true};
constexpr Format kBf16{.exponent_bits = 8, .fraction_bits = 7};
constexpr Format kTf32{.exponent_bits = 8, .fraction_bits = 10, .ignored_bits = 13};
constexpr Format kF32{.exponent_bits = 8, .fraction_bits = 23};

constexpr Format format_of(OperandType type) {
    switch (type) {
        case OperandType::f16:
            return kF16;
        case OperandType::bf16:
            return kBf16;
        case OperandType::tf32:
            break;
    }
    return kTf32;
}

constexpr Format format_of(AccumulatorType type) { return type == AccumulatorType::f16 ? kF16 : kF32; }

enum class Kind : std::uint8_t { finite, infinite, nan };

/// If finite: significand * 2^(exponent - fraction_bits). The significand of an infinity carries its sign.
struct Number {
    Kind kind = Kind::finite;
    std::int64_t significand = 0;
    int exponent = 0;
    int fraction_bits = 0;
};

Number decode(std::uint32_t word, Format format) {
    const std::uint32_t bits = word >> format.ignored_bits;
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    if (magnitude > format.infinity()) return {.kind = Kind::nan};
    const bool negative = (bits & format.sign()) != 0;
    if (magnitude == format.infinity()) return {.kind = Kind::infinite, .significand = negative ? -1 : 1};

    const std::int64_t hidden = std::int64_t{1} << format.fraction_bits;
    const int field = static_cast<int>(magnitude >> format.fraction_bits);
    const std::int64_t fraction = magnitude & (hidden - 1);
    const std::int64_t significand = field == 0 ? fraction : fraction | hidden;
    return {.significand = negative ? -significand : significand,
            .exponent = std::max(field, 1) - format.bias(),
            .fraction_bits = format.fraction_bits};
}

Number multiply(const Number& a, const Number& b) {
    if (a.kind == Kind::nan || b.kind == Kind::nan) return {.kind = Kind::nan};
    const bool infinite = a.kind == Kind::infinite || b.kind == Kind::infinite;
    if (infinite && (a.significand == 0 || b.significand == 0)) return {.kind = Kind::nan};
    return {.kind = infinite ? Kind::infinite : Kind::finite,
            .significand = a.significand * b.significand,
            .exponent = a.exponent + b.exponent,
            .fraction_bits = a.fraction_bits + b.fraction_bits};
}

/// number / 2^unit, truncated toward zero.
std::int64_t truncate_to_multiple(const Number& number, int unit) {
    if (number.significand == 0) return 0;
    const int shift = number.exponent - number.fraction_bits - unit;
    if (shift >= 0) return number.significand * (std::int64_t{1} << shift);
    // A division truncates toward zero, a shift would not. Beyond 62 places nothing is left.
    return shift > -63 ? number.significand / (std::int64_t{1} << -shift) : 0;
}

struct Rounded {
    std::uint32_t bits = 0;
    bool exact = true;
};

/// sum * 2^unit in the given format.
Rounded round_to(Format format, std::int64_t sum, int unit) {
    if (sum == 0) return {};
    const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    const int leading = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
    const int exponent = std::max(leading, format.least_exponent());
    const int shift = exponent - format.fraction_bits - unit;

    Rounded result;
    std::uint64_t significand = 0;
    if (shift <= 0) {
        significand = magnitude << -shift;
    } else {
        significand = shift < 64 ? magnitude >> shift : 0;
        const std::uint64_t rest = shift < 64 ? magnitude - (significand << shift) : magnitude;
        // A sum has fewer than 63 bits, so that half a unit of 64 bits or more is more than the rest.
        const std::uint64_t half = std::uint64_t{1} << (std::min(shift, 64) - 1);
        const bool up = rest > half || (rest == half && (significand & 1) != 0);
        if (format.rounds_to_nearest && up) ++significand;
        result.exact = rest == 0;
    }
    if (significand == 0) return result;

    // The hidden bit, and a carry out of the rounding, raise the exponent field by one.
    const auto field = static_cast<std::uint64_t>(exponent - format.least_exponent()) << format.fraction_bits;
    const std::uint64_t bits = std::min<std::uint64_t>(field + significand, format.infinity());
    if (bits == format.infinity()) result.exact = false;
    result.bits = static_cast<std::uint32_t>(bits) | (sum < 0 ? format.sign() : 0);
    return result;
}

/// The terms of a step: what decides its result.
struct Terms {
    Format format;
    std::span<const std::uint32_t> a;
    std::span<const std::uint32_t> b;
    Number addend;

    template <typename Visit>
    void for_each(Visit visit) const {
        for (std::size_t k = 0; k < a.size(); ++k) visit(multiply(decode(a[k], format), decode(b[k], format)));
        visit(addend);
    }
};

}  // namespace

std::uint32_t tensor_core_step(OperandType operands, AccumulatorType accumulator, std::span<const std::uint32_t> a,
                               std::span<const std::uint32_t> b, std::uint32_t c) {
    const Format format = format_of(accumulator);
    const Terms terms{.format = format_of(operands), .a = a, .b = b, .addend = decode(c, format)};

    bool nan = false;
    bool positive_infinity = false;
    bool negative_infinity = false;
    int largest = format.least_exponent() - kExponentsBelowLeast;
    terms.for_each([&](const Number& term) {
        if (term.kind == Kind::nan) nan = true;
        if (term.kind == Kind::infinite) (term.significand < 0 ? negative_infinity : positive_infinity) = true;
        if (term.kind == Kind::finite && term.significand != 0) largest = std::max(largest, term.exponent);
    });
    if (nan || (positive_infinity && negative_infinity)) return format.canonical_nan();
    if (positive_infinity) return format.infinity();
    if (negative_infinity) return format.infinity() | format.sign();

    const int unit = largest - kFractionBits;
    std::int64_t sum = 0;
    terms.for_each([&](const Number& term) { sum += truncate_to_multiple(term, unit); });
    return round_to(format, sum, unit).bits;
}

ScaledAccumulator scale_accumulator(AccumulatorType accumulator, std::uint32_t bits, unsigned exponent) {
    const Format format = format_of(accumulator);
    const Number number = decode(bits, format);
    if (number.kind == Kind::nan) return {.bits = format.canonical_nan()};
    if (number.kind == Kind::infinite)
        return {.bits = format.infinity() | (number.significand < 0 ? format.sign() : 0)};
    const int unit = number.exponent - number.fraction_bits - static_cast<int>(exponent);
    const Rounded scaled = round_to(format, number.significand, unit);
    return {.bits = scaled.bits, .exact = scaled.exact};
}

}  // namespace block_attention::simulator
