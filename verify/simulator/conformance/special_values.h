#pragma once
#include <cstdint>
#include <vector>

#include "verify/simulator/conformance/form.h"

namespace block_attention::conformance {

/// A binary floating-point format (IEEE 754, 3.4).
struct Format {
    Kind kind;
    unsigned fraction_bits;
    unsigned exponent_bits;

    [[nodiscard]] unsigned bits() const { return 1 + exponent_bits + fraction_bits; }
    [[nodiscard]] std::uint64_t fraction_mask() const { return (std::uint64_t{1} << fraction_bits) - 1; }
    [[nodiscard]] std::uint64_t bias() const { return (std::uint64_t{1} << (exponent_bits - 1)) - 1; }
    [[nodiscard]] std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
    /// Exponent of the least subnormal number.
    [[nodiscard]] int least_exponent() const { return 1 - static_cast<int>(bias()) - static_cast<int>(fraction_bits); }

    /// Exact: no format has more than a double.
    [[nodiscard]] double value(std::uint64_t bits) const;
    /// To nearest, ties to even. A NaN becomes the quiet one without payload.
    [[nodiscard]] std::uint64_t round(double value) const;
};

/// Whether the kind is a floating-point type, or a pair of one.
bool is_floating(Kind kind);
/// Whether the kind holds two values of 16 bits.
bool is_pair(Kind kind);
/// The kind of each half of a pair.
Kind part_of(Kind kind);
/// The format of a floating-point kind that is no pair.
Format format_of(Kind kind);

/// Values at which something changes, the most important first. Empty for a predicate.
const std::vector<std::uint64_t>& special_values(Kind kind);

/// Numbers of a format at which rounding, overflow or underflow sets in.
const std::vector<std::uint64_t>& boundaries_of(const Format& format);

}  // namespace block_attention::conformance
