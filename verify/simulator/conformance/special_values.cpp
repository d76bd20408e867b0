#include "verify/simulator/conformance/special_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

namespace block_attention::conformance {

namespace {

/// Each value once, in the order of its first appearance.
std::vector<std::uint64_t> distinct(const std::vector<std::uint64_t>& values) {
    std::vector<std::uint64_t> result;
    for (const std::uint64_t value : values) {
        if (std::ranges::find(result, value) == result.end()) result.push_back(value);
    }
    return result;
}

/// Where an integer, half, single or 8-bit format begins or ends, or rounds.
constexpr std::array kConversionLimits{0.5,
                                       1.5,
                                       2.5,
                                       3.5,
                                       0.75,
                                       0.25,
                                       127.0,
                                       127.5,
                                       128.0,
                                       128.5,
                                       255.0,
                                       255.5,
                                       256.0,
                                       448.0,
                                       464.0,
                                       480.0,
                                       32767.0,
                                       32767.5,
                                       32768.0,
                                       57344.0,
                                       61440.0,
                                       65504.0,
                                       65519.0,
                                       65520.0,
                                       65535.0,
                                       65535.5,
                                       65536.0,
                                       8388607.5,
                                       8388608.5,
                                       16777215.0,
                                       16777217.0,
                                       2147483647.0,
                                       2147483648.0,
                                       2147483904.0,
                                       4294967040.0,
                                       4294967295.0,
                                       4294967296.0,
                                       9223371487098961920.0,
                                       9223372036854774784.0,
                                       9223372036854775808.0,
                                       18446742974197923840.0,
                                       18446744073709549568.0,
                                       18446744073709551616.0,
                                       0x1p-14,
                                       0x1.ffcp-15,
                                       0x1p-24,
                                       0x1p-25,
                                       0x1.8p-24,
                                       0x1.004p0,
                                       0x1.002p0,
                                       0x1.006p0,
                                       0x1.01p0,
                                       0x1.03p0,
                                       0x1.02p0,
                                       0x1p-126,
                                       0x1.fffffep-127,
                                       0x1p-127,
                                       0x1p-133,
                                       0x1p-134,
                                       0x1p-149,
                                       0x1p-150,
                                       0x1.8p-150,
                                       0x1.000001p0,
                                       0x1.000003p0,
                                       0x1.fffffep127,
                                       0x1.ffffffp127,
                                       0x1.fep127,
                                       0x1.ffp127,
                                       0x1p-9,
                                       0x1p-6,
                                       0x1p-10,
                                       0x1p-16,
                                       0x1p-17,
                                       126.0,
                                       126.5,
                                       149.0,
                                       150.0,
                                       0x1.921fb6p1,
                                       0x1.921fb6p0,
                                       10.0,
                                       100.0,
                                       1000.0};

std::vector<std::uint64_t> special_numbers(const Format& format) {
    const std::uint64_t sign = std::uint64_t{1} << (format.bits() - 1);
    const std::uint64_t infinity = format.infinity();
    const std::uint64_t fraction = format.fraction_mask();
    const std::uint64_t quiet = infinity | (fraction + 1) / 2;
    const std::uint64_t one = format.round(1.0);
    std::vector<std::uint64_t> values{
        0,
        sign,
        one,
        sign | one,
        infinity,
        sign | infinity,
        quiet,
        sign | (infinity | (fraction & 0x1235)),
        1,
        sign | (infinity - 1),
        fraction + 1,
        sign | 1,
        infinity - 1,
        sign | (fraction + 1),
        fraction,
        infinity | 1,
        one + 1,
        one - 1,
        sign | (one + 1),
        sign | fraction,
        format.round(0.5),
        format.round(2.0),
        format.round(1.5),
        format.round(3.0),
        format.round(-2.0),
        format.round(-0.5),
        sign | quiet,
        infinity | fraction,
        sign | infinity | fraction,
        sign | (one - 1),
        fraction + 2,
        format.round(-1.5),
    };
    for (const double limit : kConversionLimits) {
        for (const double value : {limit, -limit}) values.push_back(format.round(value));
    }
    // A whole number's last bit, and a half beyond it.
    for (int i = -2; i <= 2; ++i) {
        values.push_back(format.round(std::ldexp(1.0, static_cast<int>(format.fraction_bits) + i)) + 1);
        values.push_back((sign | format.round(std::ldexp(1.0, static_cast<int>(format.fraction_bits) + i))) - 1);
    }
    return distinct(values);
}

std::vector<std::uint64_t> special_integers(unsigned bits) {
    const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    const std::uint64_t least = std::uint64_t{1} << (bits - 1);
    const std::uint64_t half = std::uint64_t{1} << bits / 2;
    std::vector<std::uint64_t> values{0,
                                      1,
                                      mask,
                                      least,
                                      least - 1,
                                      2,
                                      mask - 1,
                                      3,
                                      0x55,
                                      half - 1,
                                      least + 1,
                                      half,
                                      7,
                                      0x80,
                                      0xFF,
                                      5,
                                      0x5555555555555555 & mask,
                                      0xAAAAAAAAAAAAAAAA & mask,
                                      0x7F,
                                      0x100,
                                      8,
                                      15,
                                      16,
                                      31,
                                      32,
                                      33,
                                      63,
                                      64,
                                      10,
                                      100,
                                      0x0F0F0F0F0F0F0F0F & mask,
                                      0x00FF00FF00FF00FF & mask,
                                      half + 1,
                                      (0 - half) & mask,
                                      (0 - half - 1) & mask,
                                      least - 2,
                                      0x81,
                                      0x101,
                                      0x7E,
                                      0x123456789ABCDEF0 & mask,
                                      0x3210,
                                      0x7654,
                                      0xFEDC,
                                      0x88888888 & mask,
                                      1000,
                                      0x1F1F};
    for (unsigned bit = 0; bit < bits; ++bit) {
        const std::uint64_t power = std::uint64_t{1} << bit;
        for (const std::uint64_t value : {power, power - 1, (0 - power) & mask}) values.push_back(value);
    }
    return distinct(values);
}

std::vector<std::uint64_t> special_positions() {
    std::vector<std::uint64_t> values{0,          1,  31, 32,  33,  63,  64,         8,      16,         255,   256,
                                      0xFFFFFFFF, 2,  7,  15,  17,  24,  30,         23,     47,         48,    62,
                                      65,         95, 96, 127, 128, 257, 0x80000000, 0x1F1F, 0x7FFFFFFF, 0x101F};
    for (std::uint64_t i = 0; i < 70; ++i) values.push_back(i);
    return distinct(values);
}

/// Both halves the same, each half with 1 beside it, and different ones.
std::vector<std::uint64_t> special_pairs(const std::vector<std::uint64_t>& parts) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < parts.size(); ++i) values.push_back(parts[(i * 7 + 3) % parts.size()] << 16 | parts[i]);
    for (std::size_t i = 0; i < parts.size(); ++i) values.push_back(parts[i] << 16 | parts[i]);
    return distinct(values);
}

std::vector<std::uint64_t> make_special_values(Kind kind) {
    if (kind == 'p') return {};
    if (kind == 'a') return special_positions();
    if (kind == 'x') return special_pairs(special_integers(16));
    if (is_pair(kind)) return special_pairs(special_numbers(format_of(part_of(kind))));
    return is_floating(kind) ? special_numbers(format_of(kind)) : special_integers(bits_of(kind));
}

}  // namespace

double Format::value(std::uint64_t bits) const {
    const bool negative = (bits >> (this->bits() - 1) & 1) != 0;
    const std::uint64_t exponent = bits >> fraction_bits & ((std::uint64_t{1} << exponent_bits) - 1);
    const std::uint64_t fraction = bits & fraction_mask();
    double magnitude = 0;
    if (exponent == (std::uint64_t{1} << exponent_bits) - 1) {
        magnitude = std::bit_cast<double>(fraction == 0 ? 0x7FF0000000000000 : 0x7FF8000000000000);
    } else {
        const std::uint64_t significand = exponent == 0 ? fraction : fraction | std::uint64_t{1} << fraction_bits;
        const int scale = (exponent == 0 ? 1 : static_cast<int>(exponent)) - static_cast<int>(bias()) -
                          static_cast<int>(fraction_bits);
        magnitude = std::ldexp(static_cast<double>(significand), scale);
    }
    return negative ? -magnitude : magnitude;
}

std::uint64_t Format::round(double value) const {
    const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (bits() - 1) : 0;
    if (std::isnan(value)) return infinity() | (fraction_mask() + 1) / 2;
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | infinity();
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    // The unit in the last place, and how many of them.
    const int unit = std::max(exponent - 1 - static_cast<int>(fraction_bits), least_exponent());
    const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
    const auto steps = static_cast<std::uint64_t>(unit - least_exponent());
    return sign | std::min((steps << fraction_bits) + units, infinity());
}

bool is_floating(Kind kind) {
    return kind == 'e' || kind == 'g' || kind == 'f' || kind == 'd' || kind == 'E' || kind == 'G';
}
bool is_pair(Kind kind) { return kind == 'E' || kind == 'G' || kind == 'x'; }
Kind part_of(Kind kind) { return kind == 'E' ? 'e' : kind == 'G' ? 'g' : 'h'; }

Format format_of(Kind kind) {
    switch (kind) {
        case 'e':
            return {kind, 10, 5};
        case 'g':
            return {kind, 7, 8};
        case 'f':
            return {kind, 23, 8};
        case 'd':
            return {kind, 52, 11};
        default:
            throw std::invalid_argument(fmt::format("kind '{}' is no floating-point format", kind));
    }
}

const std::vector<std::uint64_t>& special_values(Kind kind) {
    static std::map<Kind, std::vector<std::uint64_t>> known;
    auto& values = known[kind];
    if (values.empty()) values = make_special_values(kind);
    return values;
}

const std::vector<std::uint64_t>& boundaries_of(const Format& format) {
    static std::map<Kind, std::vector<std::uint64_t>> known;
    auto& values = known[format.kind];
    if (values.empty()) {
        const std::uint64_t fraction = format.fraction_mask();
        for (const std::uint64_t value :
             {fraction + 1, fraction, fraction + 2, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
              format.infinity() - 1, format.infinity() - 2, format.round(1.0), format.round(1.0) + 1,
              format.round(1.0) - 1, format.round(0.5), format.round(2.0)}) {
            values.push_back(value);
            values.push_back(value | std::uint64_t{1} << (format.bits() - 1));
        }
    }
    return values;
}

}  // namespace block_attention::conformance
