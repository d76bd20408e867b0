#include "verify/simulator/isa/packed_conversion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/soft_float.h"

namespace block_attention::simulator {

namespace {

using U = std::uint32_t;

// To 16 bits.

/// What is done to a value beside rounding it.
struct Narrowing {
    Rounding rounding = Rounding::nearest;
    bool relu = false;       ///< a negative number becomes +0; NaN stays
    bool satfinite = false;  ///< an infinite result becomes the largest finite one
};

template <typename T>
constexpr std::uint16_t kInfinity = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;

template <typename T, Narrowing how>
T narrow(float value) {
    if (how.relu && !(value > 0) && value == value) return T{0};
    T result{};
    if constexpr (how.rounding == Rounding::nearest) {
        result = round_to<T>(value);
    } else {
        const Type type = std::is_same_v<T, Half> ? Type::f16 : Type::bf16;
        result = {static_cast<std::uint16_t>(round_to_type(double{value}, type, how.rounding))};
    }
    if (how.satfinite && (result.bits & 0x7FFF) == kInfinity<T>) --result.bits;
    return result;
}

template <typename T, Narrowing how>
struct Narrow {
    static T apply(float value) { return narrow<T, how>(value); }
};

/// Two floats to two 16-bit ones: the first source to the upper half.
template <typename T, Narrowing how>
struct NarrowPair {
    static std::uint32_t apply(float high, float low) {
        return std::uint32_t{narrow<T, how>(high).bits} << 16 | narrow<T, how>(low).bits;
    }
};

template <typename T, Narrowing how>
Execute narrowing(bool pair) {
    return pair ? &execute_lanes<NarrowPair<T, how>, U, float, float> : &execute_lanes<Narrow<T, how>, T, float>;
}

template <typename T, Rounding rounding>
Execute choose_narrowing(bool relu, bool satfinite, bool pair) {
    if (relu) {
        return satfinite ? narrowing<T, Narrowing{rounding, true, true}>(pair)
                         : narrowing<T, Narrowing{rounding, true, false}>(pair);
    }
    return satfinite ? narrowing<T, Narrowing{rounding, false, true}>(pair)
                     : narrowing<T, Narrowing{rounding, false, false}>(pair);
}

Rounding take_rounding(Decoder& d) {
    const auto rounding = d.take_one<Rounding>({{"rn", Rounding::nearest}, {"rz", Rounding::zero}});
    if (!rounding) d.refuse("the rounding is missing: .rn or .rz");
    return *rounding;
}

void decode_narrowing(Decoder& d, Type to) {
    const bool nearest = take_rounding(d) == Rounding::nearest;
    const bool relu = d.take("relu");
    const bool satfinite = d.take("satfinite");
    d.take_type();
    if (d.take_type() != Type::f32) d.refuse("its sources are of type .f32");
    const bool pair = to == Type::f16x2 || to == Type::bf16x2;
    const bool half = to == Type::f16x2 || to == Type::f16;
    if (half) {
        d.result.execute = nearest ? choose_narrowing<Half, Rounding::nearest>(relu, satfinite, pair)
                                   : choose_narrowing<Half, Rounding::zero>(relu, satfinite, pair);
    } else {
        d.result.execute = nearest ? choose_narrowing<BFloat16, Rounding::nearest>(relu, satfinite, pair)
                                   : choose_narrowing<BFloat16, Rounding::zero>(relu, satfinite, pair);
    }
    d.finish_modifiers();
    d.expect_operands(pair ? 3 : 2);
    d.result.slots[0] = d.destination(0, to);
    for (std::size_t k = 1; k < d.operands(); ++k) d.result.slots[k] = d.source(k, Type::f32);
}

// To tf32: a float with 10 bits of fraction.

constexpr std::uint32_t kInfinity32 = 0x7F800000;
constexpr std::uint32_t kDropped = 0x1FFF;
constexpr std::uint32_t kLastBit = kDropped + 1;

template <bool nearest, bool relu>
struct ToTf32 {
    static std::uint32_t apply(std::uint32_t bits) {
        const std::uint32_t magnitude = bits & 0x7FFFFFFF;
        if (magnitude > kInfinity32) return 0x7FFFE000;
        if (relu && bits >> 31 != 0) return 0;
        const std::uint32_t tie = kLastBit / 2 - 1 + (bits / kLastBit & 1);
        return (nearest ? bits + tie : bits) & ~kDropped;
    }
};

/// Ties away from zero. ptxas makes it of integer instructions, which truncate a NaN, and turn NaN and infinity into
/// what is one below them if results are to be finite (measured on H200).
template <bool satfinite>
struct ToTf32TiesAway {
    static std::uint32_t apply(std::uint32_t bits) {
        const bool special = (bits & kInfinity32) == kInfinity32;
        const std::uint32_t rounded = (special ? bits : bits + kLastBit / 2) & ~kDropped;
        return satfinite && (rounded & 0x7FFFFFFF) >= kInfinity32 ? rounded - kLastBit : rounded;
    }
};

void decode_tf32(Decoder& d) {
    const bool away = d.take("rna");
    if (away) {
        d.result.execute = d.take("satfinite") ? &execute_lanes<ToTf32TiesAway<true>, U, U>
                                               : &execute_lanes<ToTf32TiesAway<false>, U, U>;
    } else {
        const bool nearest = take_rounding(d) == Rounding::nearest;
        const bool relu = d.take("relu");
        d.result.execute =
            nearest ? (relu ? &execute_lanes<ToTf32<true, true>, U, U> : &execute_lanes<ToTf32<true, false>, U, U>)
                    : (relu ? &execute_lanes<ToTf32<false, true>, U, U> : &execute_lanes<ToTf32<false, false>, U, U>);
    }
    d.take_type();
    if (d.take_type() != Type::f32) d.refuse("its source is of type .f32");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::b32);
    d.result.slots[1] = d.source(1, Type::f32);
}

// 8-bit floating-point numbers.

struct E4M3 {
    static constexpr int kFractionBits = 3;
    static constexpr int kLeastExponent = -9;  ///< of the least subnormal number
    static constexpr std::uint32_t kLargest = 0x7E;
    static constexpr std::uint32_t kNan = 0x7F;
    static constexpr std::uint32_t kFirstSpecial = 0x7F;  ///< no infinity, one NaN
};

struct E5M2 {
    static constexpr int kFractionBits = 2;
    static constexpr int kLeastExponent = -16;
    static constexpr std::uint32_t kLargest = 0x7B;
    static constexpr std::uint32_t kNan = 0x7F;
    static constexpr std::uint32_t kFirstSpecial = 0x7C;
};

/// To nearest, ties to even, and never beyond the largest number.
template <typename T, bool relu>
std::uint32_t to_short(float value) {
    if (value != value) return T::kNan;
    const std::uint32_t sign = std::signbit(value) ? 0x80 : 0;
    if (relu && sign != 0) return 0;
    const double magnitude = std::fabs(double{value});
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | T::kLargest;
    const int unit = std::max(std::ilogb(magnitude) - T::kFractionBits, T::kLeastExponent);
    const auto units = static_cast<std::int64_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
    const std::int64_t bits = (std::int64_t{unit - T::kLeastExponent} << T::kFractionBits) + units;
    return sign | static_cast<std::uint32_t>(std::min<std::int64_t>(bits, T::kLargest));
}

template <typename T>
float from_short(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7F;
    const bool infinite = magnitude == T::kFirstSpecial && T::kFirstSpecial != T::kNan;
    if (magnitude >= T::kFirstSpecial && !infinite) return std::numeric_limits<float>::quiet_NaN();
    const std::uint32_t exponent = magnitude >> T::kFractionBits;
    const std::uint32_t fraction = magnitude & ((1U << T::kFractionBits) - 1);
    const std::uint32_t significand = exponent == 0 ? fraction : fraction | 1U << T::kFractionBits;
    const float number =
        std::ldexp(static_cast<float>(significand), static_cast<int>(std::max(exponent, 1U)) - 1 + T::kLeastExponent);
    const float value = infinite ? std::numeric_limits<float>::infinity() : number;
    return (bits & 0x80) != 0 ? -value : value;
}

template <typename T, bool relu>
struct PairToShort {
    static std::uint16_t apply(float high, float low) {
        return static_cast<std::uint16_t>(to_short<T, relu>(high) << 8 | to_short<T, relu>(low));
    }
};

template <typename T, bool relu>
struct HalvesToShort {
    static std::uint16_t apply(std::uint32_t pair) {
        const float high = to_float(Half{static_cast<std::uint16_t>(pair >> 16)});
        return PairToShort<T, relu>::apply(high, to_float(Half{static_cast<std::uint16_t>(pair)}));
    }
};

template <typename T, bool relu>
struct ShortToHalves {
    static std::uint32_t apply(std::uint16_t pair) {
        constexpr Narrowing kHow{Rounding::nearest, relu, false};
        return NarrowPair<Half, kHow>::apply(from_short<T>(pair >> 8), from_short<T>(pair & 0xFF));
    }
};

enum class ShortDirection : std::uint8_t { from_floats, from_halves, to_halves };

template <typename T, bool relu>
Execute choose_short(ShortDirection direction) {
    switch (direction) {
        case ShortDirection::from_floats:
            return &execute_lanes<PairToShort<T, relu>, std::uint16_t, float, float>;
        case ShortDirection::from_halves:
            return &execute_lanes<HalvesToShort<T, relu>, std::uint16_t, U>;
        case ShortDirection::to_halves:
            return &execute_lanes<ShortToHalves<T, relu>, U, std::uint16_t>;
    }
    return nullptr;
}

void decode_short(Decoder& d, bool to_halves) {
    if (!d.take("rn")) d.refuse("the rounding is .rn");
    const bool relu = d.take("relu");
    const bool satfinite = d.take("satfinite");
    const bool small_exponent = d.take("e4m3x2");
    if (!small_exponent) d.take("e5m2x2");
    const Type other = d.take_type();
    if (other != Type::f16x2 && (to_halves || other != Type::f32))
        d.refuse("a conversion between these types is not simulated");
    if (satfinite == to_halves) d.refuse("it has .satfinite exactly if its result has 8 bits");
    const auto direction = to_halves              ? ShortDirection::to_halves
                           : other == Type::f16x2 ? ShortDirection::from_halves
                                                  : ShortDirection::from_floats;
    if (small_exponent) {
        d.result.execute = relu ? choose_short<E4M3, true>(direction) : choose_short<E4M3, false>(direction);
    } else {
        d.result.execute = relu ? choose_short<E5M2, true>(direction) : choose_short<E5M2, false>(direction);
    }
    d.finish_modifiers();
    d.expect_operands(direction == ShortDirection::from_floats ? 3 : 2);
    d.result.slots[0] = d.destination(0, to_halves ? Type::b32 : Type::b16);
    for (std::size_t k = 1; k < d.operands(); ++k) d.result.slots[k] = d.source(k, to_halves ? Type::b16 : Type::b32);
}

// cvt.pack: two integers, clamped, side by side below what is left of a third one.

/// The types of its results, by name.
struct PackedInteger {
    std::string_view name;
    unsigned bits;
    bool is_signed;
};

constexpr std::array kPackedIntegers{
    PackedInteger{"u16", 16, false}, PackedInteger{"s16", 16, true}, PackedInteger{"u8", 8, false},
    PackedInteger{"s8", 8, true},    PackedInteger{"u4", 4, false},  PackedInteger{"s4", 4, true},
    PackedInteger{"u2", 2, false},   PackedInteger{"s2", 2, true},
};

template <unsigned bits, bool is_signed>
struct Pack {
    static std::uint32_t apply(std::int32_t a, std::int32_t b) { return apply(a, b, 0); }
    static std::uint32_t apply(std::int32_t a, std::int32_t b, std::uint32_t c) {
        const std::uint32_t upper = bits == 16 ? 0 : c << (2 * bits % 32);
        return upper | clamped(a) << bits | clamped(b);
    }

  private:
    static std::uint32_t clamped(std::int32_t value) {
        constexpr std::int32_t kMost = (1 << (is_signed ? bits - 1 : bits)) - 1;
        constexpr std::int32_t kLeast = is_signed ? -kMost - 1 : 0;
        return static_cast<std::uint32_t>(std::clamp(value, kLeast, kMost)) & ((1U << bits) - 1);
    }
};

template <unsigned bits>
Execute choose_pack(bool is_signed) {
    using S = std::int32_t;
    if constexpr (bits == 16) {
        return is_signed ? &execute_lanes<Pack<bits, true>, U, S, S> : &execute_lanes<Pack<bits, false>, U, S, S>;
    } else {
        return is_signed ? &execute_lanes<Pack<bits, true>, U, S, S, U> : &execute_lanes<Pack<bits, false>, U, S, S, U>;
    }
}

void decode_pack(Decoder& d) {
    d.take("pack");
    if (!d.take("sat")) d.refuse("its form is cvt.pack.sat");
    const auto* to = std::ranges::find_if(kPackedIntegers, [&](const auto& type) { return d.take(type.name); });
    if (to == kPackedIntegers.end() || d.take_type() != Type::s32) d.refuse("it makes short integers of .s32");
    const bool third = to->bits != 16;
    if (third && d.take_type() != Type::b32) d.refuse("the type of its last operand is .b32");
    switch (to->bits) {
        case 16:
            d.result.execute = choose_pack<16>(to->is_signed);
            break;
        case 8:
            d.result.execute = choose_pack<8>(to->is_signed);
            break;
        case 4:
            d.result.execute = choose_pack<4>(to->is_signed);
            break;
        default:
            d.result.execute = choose_pack<2>(to->is_signed);
            break;
    }
    d.finish_modifiers();
    d.expect_operands(third ? 4 : 3);
    d.result.slots[0] = d.destination(0, Type::b32);
    for (std::size_t k = 1; k < d.operands(); ++k) d.result.slots[k] = d.source(k, Type::b32);
}

}  // namespace

bool decode_packed_conversion(Decoder& d) {
    const auto& modifiers = d.instruction().modifiers;
    const auto at = [&](std::string_view name) { return std::ranges::find(modifiers, name); };
    const auto has = [&](std::string_view name) { return at(name) != modifiers.end(); };
    if (has("pack")) {
        decode_pack(d);
        return true;
    }
    for (const auto* name : {"e4m3x2", "e5m2x2"}) {
        if (!has(name)) continue;
        decode_short(d, at("f16x2") < at(name));
        return true;
    }
    const auto first_type =
        std::ranges::find_if(modifiers, [](std::string_view name) { return parse_type(name).has_value(); });
    if (first_type == modifiers.end()) return false;
    const Type to = *parse_type(*first_type);
    if (to == Type::tf32) {
        decode_tf32(d);
        return true;
    }
    const bool pair = to == Type::f16x2 || to == Type::bf16x2;
    const bool single = (to == Type::f16 || to == Type::bf16) && (has("relu") || has("satfinite"));
    if (pair || single) decode_narrowing(d, to);
    return pair || single;
}

}  // namespace block_attention::simulator
