#include "verify/simulator/isa/special_functions.h"

#include <array>
#include <bit>
#include <span>

#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/special_functions_table.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kInfinity = 0x7F800000;
constexpr std::uint32_t kImplicitOne = 0x00800000;
constexpr unsigned kSquareBits = 15;

/// The square of a fraction of 15 bits, in units of 2^-15, as the unit forms it: partial products below are dropped.
std::uint16_t truncated_square(std::uint32_t x) {
    std::uint32_t sum = 0;
    for (unsigned i = 1; i <= kSquareBits; ++i) {
        if ((x >> (kSquareBits - i) & 1) == 0) continue;
        if (2 * i <= kSquareBits) sum += 1U << (kSquareBits - 2 * i);
        for (unsigned j = i + 1; i + j <= kSquareBits + 1 && j <= kSquareBits; ++j) {
            if ((x >> (kSquareBits - j) & 1) != 0) sum += 1U << (kSquareBits + 1 - i - j);
        }
    }
    return static_cast<std::uint16_t>(sum);
}

const std::array<std::uint16_t, 1 << kSquareBits>& truncated_squares() {
    static const auto squares = [] {
        std::array<std::uint16_t, 1 << kSquareBits> table{};
        for (std::uint32_t x = 0; x < table.size(); ++x) table[x] = truncated_square(x);
        return table;
    }();
    return squares;
}

/// The interpolated mantissa for a 23-bit fraction.
std::uint32_t interpolate(std::span<const Segment> segments, std::int64_t bias, std::uint32_t fraction) {
    const unsigned position_bits = 23 - static_cast<unsigned>(std::countr_zero(segments.size()));
    const Segment& segment = segments[fraction >> position_bits];
    const std::uint32_t position = fraction & ((1U << position_bits) - 1);
    const std::int64_t square = truncated_squares()[position >> (position_bits - kSquareBits)];
    return static_cast<std::uint32_t>(
        ((std::int64_t{segment.c0} << 13) + std::int64_t{segment.c1} * position + segment.c2 * square + bias) >> 15);
}

}  // namespace

std::uint32_t exp2_approximation_ftz(std::uint32_t x) {
    const std::uint32_t magnitude = x & 0x7FFFFFFF;
    const bool negative = x >> 31 != 0;
    if (magnitude > kInfinity) return kNan32;
    if (magnitude >= 0x43800000) return negative ? 0 : kInfinity;  // 256 and beyond
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    const std::uint64_t significand = (magnitude & 0x7FFFFF) | kImplicitOne;

    // |x| in units of 2^-23, truncated.
    std::uint64_t fixed = 0;
    if (exponent >= 0) {
        fixed = significand << exponent;
    } else if (exponent >= -24) {
        fixed = significand >> -exponent;
    }
    auto whole = static_cast<int>(fixed >> 23);
    auto fraction = static_cast<std::uint32_t>(fixed & 0x7FFFFF);
    if (negative) {
        whole = fraction == 0 ? -whole : -whole - 1;
        if (fraction != 0) fraction ^= 0x7FFFFF;
    }
    if (whole > 127) return kInfinity;
    if (whole < -126) return 0;
    return static_cast<std::uint32_t>(whole + 127) << 23 | interpolate(kExp2Segments, -2078, fraction);
}

std::uint32_t exp2_approximation(std::uint32_t x) {
    const auto value = std::bit_cast<float>(x);
    if (!(value < -126)) return exp2_approximation_ftz(x);
    const auto root = std::bit_cast<float>(exp2_approximation_ftz(std::bit_cast<std::uint32_t>(value * 0.5F)));
    return std::bit_cast<std::uint32_t>(root * root);
}

std::uint32_t reciprocal_approximation_ftz(std::uint32_t x) {
    const std::uint32_t magnitude = x & 0x7FFFFFFF;
    const std::uint32_t sign = x & 0x80000000;
    if (magnitude > kInfinity) return kNan32;
    if (magnitude == kInfinity) return sign;
    if (magnitude < kImplicitOne) return sign | kInfinity;
    std::uint32_t mantissa = interpolate(kReciprocalSegments, 2023, magnitude & 0x7FFFFF);
    int exponent = 253 - static_cast<int>(magnitude >> 23);
    if (mantissa == 2 * kImplicitOne) {
        mantissa = kImplicitOne;
        ++exponent;
    }
    if (exponent <= 0) return sign;
    return sign | static_cast<std::uint32_t>(exponent) << 23 | (mantissa & 0x7FFFFF);
}

}  // namespace block_attention::simulator
