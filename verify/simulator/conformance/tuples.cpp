#include "verify/simulator/conformance/tuples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "verify/simulator/conformance/special_values.h"
#include "verify/simulator/machine/random.h"

namespace block_attention::conformance {

namespace {

using simulator::Random;

template <typename T>
const T& any_of(Random& random, const std::vector<T>& values) {
    return values[random.below(static_cast<std::uint32_t>(values.size()))];
}

using Tuple = std::array<std::uint64_t, 4>;

std::uint64_t mask_of(Kind kind) {
    return bits_of(kind) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_of(kind)) - 1;
}

/// Random bits; of an integer or a position, as often a random number of them.
std::uint64_t random_value(Random& random, Kind kind) {
    const std::uint64_t bits = random.next();
    if (is_floating(kind)) return bits & mask_of(kind);
    const std::uint64_t narrow = bits & mask_of(kind);
    return random.below(2) == 0 ? narrow : narrow >> random.below(bits_of(kind));
}

/// A number whose exponent is near that of 1, so that operands meet.
std::uint64_t similar_value(Random& random, Kind kind) {
    if (!is_floating(kind)) return random_value(random, kind);
    if (is_pair(kind)) {
        const Kind part = part_of(kind);
        const std::uint64_t low = similar_value(random, part);
        return similar_value(random, part) << 16 | low;
    }
    const Format format = format_of(kind);
    const std::uint64_t sign = random.next() & std::uint64_t{1} << (format.bits() - 1);
    const std::uint64_t exponent = format.bias() - 4 + random.below(9);
    const std::uint64_t fraction = random.next() & format.fraction_mask();
    // Short fractions make exact results and ties.
    const std::uint64_t kept =
        random.below(4) == 0 ? fraction >> format.fraction_bits / 2 << format.fraction_bits / 2 : fraction;
    return sign | exponent << format.fraction_bits | kept;
}

/// A floating-point value that stands in a given relation to those before it in its tuple.
std::uint64_t related_number(Random& random, const Format& format, std::span<const std::uint64_t> before,
                             unsigned relation) {
    const std::uint64_t sign = std::uint64_t{1} << (format.bits() - 1);
    const std::uint64_t first = before[0];
    const double a = format.value(first);
    const double boundary = format.value(any_of(random, boundaries_of(format)));
    const auto near = [&](double value) {
        const std::uint64_t steps = random.below(5);
        return (format.round(value) + steps - 2) & (sign | (sign - 1));
    };
    if (before.size() >= 2) {
        const double product = a * format.value(before[1]);
        switch (relation) {
            case 0:
                return near(-product);
            case 1:
                return near(boundary - product);
            case 2:
                return near(product * std::ldexp(1.0, -static_cast<int>(format.fraction_bits) - 1));
            case 3:
                return near(std::ldexp(random.below(2) == 0 ? 1.0 : -1.0, format.least_exponent()));
            default:
                return similar_value(random, format.kind);
        }
    }
    switch (relation) {
        case 0:
            return first;
        case 1:
            return first ^ sign;
        case 2:
            return near(a);
        case 3:
            return near(boundary / a);
        case 4:
            return near(a / boundary);
        case 5:
            return near(boundary - a);
        case 6:
            return near(
                a * std::ldexp(1.0, -static_cast<int>(format.fraction_bits) - 2 + static_cast<int>(random.below(4))));
        default:
            return near(1.0);
    }
}

std::uint64_t related_integer(Random& random, Kind kind, std::uint64_t first, unsigned relation) {
    const std::uint64_t mask = mask_of(kind);
    switch (relation) {
        case 0:
            return first & mask;
        case 1:
            return ~first & mask;
        case 2:
            return (0 - first) & mask;
        case 3:
            return (first + random.below(5) - 2) & mask;
        case 4:
            return random.below(19);
        case 5:
            return std::uint64_t{1} << random.below(bits_of(kind));
        case 6:
            return (first & mask) >> random.below(bits_of(kind));
        default:
            return (std::uint64_t{1} << random.below(bits_of(kind))) - 1;
    }
}

/// A number with one bit more than a narrower type keeps, and nothing below it or 1 more or less: a tie when it is
/// converted, or beside one. The exponent is one of the narrower type's.
std::uint64_t number_near_tie(Random& random, const Format& format) {
    constexpr std::array<std::array<unsigned, 2>, 7> kNarrower{
        {{10, 5}, {7, 8}, {23, 8}, {10, 8}, {3, 4}, {2, 5}, {0, 7}}};
    const auto [fraction_bits, exponent_bits] = kNarrower.at(random.below(kNarrower.size()));
    const std::uint64_t range = std::uint64_t{1} << std::min(exponent_bits, format.exponent_bits);
    // From the least subnormal number's half on: there fewer bits are kept.
    const std::uint64_t exponent = random.below(static_cast<std::uint32_t>(range + fraction_bits + 2)) + format.bias() +
                                   2 - range / 2 - fraction_bits - 2;
    const std::uint64_t lost = format.bias() + 2 - range / 2 > exponent ? format.bias() + 2 - range / 2 - exponent : 0;
    const std::uint64_t kept = fraction_bits > lost ? fraction_bits - lost : 0;
    if (kept + 1 > format.fraction_bits || exponent >> format.exponent_bits != 0)
        return similar_value(random, format.kind);
    const unsigned tie = format.fraction_bits - static_cast<unsigned>(kept) - 1;
    const std::uint64_t fraction = (random.next() & format.fraction_mask()) >> tie | 1;
    const std::uint64_t sign = random.below(2) == 0 ? 0 : std::uint64_t{1} << (format.bits() - 1);
    return sign | ((exponent << format.fraction_bits | fraction << tie) + random.below(3) - 1);
}

/// The only operand, where converting it or taking its reciprocal or its root meets a boundary.
std::uint64_t single_number(Random& random, const Format& format, unsigned relation) {
    const double boundary = format.value(any_of(random, boundaries_of(format)));
    const auto near = [&](double value) { return (format.round(value) + random.below(9) - 4) & mask_of(format.kind); };
    switch (relation) {
        case 0:
            return near(1 / boundary);
        case 1:
            return near(boundary * boundary);
        case 2:
            // A whole number and a half, or beside it.
            return near(std::floor(std::ldexp(1.0, static_cast<int>(random.below(66))) *
                                   format.value(similar_value(random, format.kind))) +
                        0.5);
        default:
            return number_near_tie(random, format);
    }
}

/// The only operand: about as many bits as a floating-point type keeps, a tie, or beside one.
std::uint64_t single_integer(Random& random, Kind kind) {
    constexpr std::array<unsigned, 4> kPrecisions{8, 11, 24, 53};
    const unsigned precision = kPrecisions.at(random.below(kPrecisions.size()));
    const unsigned bits = bits_of(kind);
    const unsigned width = 1 + random.below(bits);
    const std::uint64_t value = random.next() >> (64 - width);
    if (width <= precision + 1) return value & mask_of(kind);
    const unsigned tie = width - precision - 1;
    return (((value >> tie | 1) << tie) + random.below(3) - 1) & mask_of(kind);
}

std::uint64_t single_value(Random& random, Kind kind, unsigned relation) {
    if (!is_floating(kind)) return single_integer(random, kind);
    if (!is_pair(kind)) return single_number(random, format_of(kind), relation);
    const Format part = format_of(part_of(kind));
    return single_number(random, part, relation) << 16 | single_number(random, part, relation);
}

std::uint64_t related_value(Random& random, Kind kind, std::span<const std::uint64_t> before, unsigned relation) {
    if (!is_floating(kind)) return related_integer(random, kind, before[0], relation);
    if (!is_pair(kind)) return related_number(random, format_of(kind), before, relation);
    std::uint64_t both = 0;
    for (const unsigned shift : {0U, 16U}) {
        std::array<std::uint64_t, 4> parts{};
        for (std::size_t k = 0; k < before.size(); ++k) parts[k] = before[k] >> shift & 0xFFFF;
        both |= related_number(random, format_of(part_of(kind)), std::span(parts).first(before.size()), relation)
                << shift;
    }
    return both;
}

/// How many of the most important values to take, so that all their combinations fit into a quarter.
std::size_t values_combined(std::size_t operands) {
    std::size_t values = 1;
    while (std::pow(static_cast<double>(values + 1), static_cast<double>(operands)) <= kTuplesPerQuarter) ++values;
    return values;
}

std::uint64_t special_combination(Kinds operands, std::size_t k, std::size_t tuple) {
    const auto& values = special_values(operands[k]);
    if (operands.size() == 1) {
        // 0, 1, -1, 2, -2, ... beside each value.
        const std::size_t round = tuple / values.size();
        const std::uint64_t step = round % 2 == 1 ? (round + 1) / 2 : std::uint64_t{0} - round / 2;
        return (values[tuple % values.size()] + step) & mask_of(operands[k]);
    }
    const std::size_t combined = values_combined(operands.size());
    for (std::size_t i = 0; i < k; ++i) tuple /= combined;
    return values[tuple % combined % values.size()];
}

/// Predicates that are often the same in a whole CTA, a whole warp, or all lanes but one.
std::uint64_t predicate_of(Random& random, std::size_t tuple) {
    const std::size_t warp = tuple / 32;
    const std::size_t cta = tuple / kThreads;
    const bool odd_one = tuple % 32 == (warp * 7) % 32;
    switch (cta % 4) {
        case 1:
            return cta % 8 == 1 || tuple % kThreads != 77 ? 1 : 0;
        case 2:
            return cta % 8 == 2 || tuple % kThreads != 77 ? 0 : 1;
        default:
            break;
    }
    switch (warp % 8) {
        case 0:
            return 1;
        case 1:
            return 0;
        case 2:
            return odd_one ? 1 : 0;
        case 3:
            return odd_one ? 0 : 1;
        default:
            return random.below(2);
    }
}

std::uint64_t value_of(Random& random, Kinds operands, std::size_t k, std::size_t tuple,
                       std::span<const std::uint64_t> before) {
    const Kind kind = operands[k];
    if (kind == 'p') return predicate_of(random, tuple);
    switch (tuple / kTuplesPerQuarter) {
        case 0:
            return special_combination(operands, k, tuple);
        case 1:
            return random.below(2) == 0 ? any_of(random, special_values(kind)) : random_value(random, kind);
        case 2:
            if (operands.size() == 1) return single_value(random, kind, static_cast<unsigned>(tuple % 8));
            // Only what follows an operand of the same kind can be related to it.
            if (k > 0 && operands[k - 1] == kind && operands[0] == kind)
                return related_value(random, kind, before, static_cast<unsigned>(tuple % 8));
            return random.below(4) == 0 ? single_value(random, kind, static_cast<unsigned>(tuple % 8))
                                        : similar_value(random, kind);
        default:
            return random.below(2) == 0 ? random_value(random, kind) : similar_value(random, kind);
    }
}

}  // namespace

std::vector<std::uint64_t> make_tuples(Kinds operands) {
    std::uint64_t seed = 2024;
    for (const Kind kind : operands) seed = seed * 131 + static_cast<unsigned char>(kind);
    Random random(seed, 0);
    std::vector<std::uint64_t> values(operands.size() * kTuples);
    for (std::size_t tuple = 0; tuple < kTuples; ++tuple) {
        Tuple drawn{};
        for (std::size_t k = 0; k < operands.size(); ++k) {
            drawn[k] = value_of(random, operands, k, tuple, std::span(drawn).first(k));
            values[k * kTuples + tuple] = drawn[k];
        }
    }
    return values;
}

}  // namespace block_attention::conformance
