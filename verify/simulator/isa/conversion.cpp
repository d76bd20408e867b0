/// cvt (PTX ISA 9.7.9.21). The pairs of types that kernels use in their inner loops have an executor of their own; all
/// others go step by step through 64-bit values.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/packed_conversion.h"
#include "verify/simulator/isa/soft_float.h"

namespace block_attention::simulator {

namespace {

/// A conversion that has no executor of its own, packed into Decoded::immediate.
struct Conversion {
    Type from = Type::u32;
    Type to = Type::u32;
    std::uint8_t from_bits = 32;  ///< of the source register, which may be wider than its type
    std::uint8_t to_bits = 32;    ///< of the destination register
    Rounding rounding = Rounding::nearest;
    bool to_integer = false;  ///< `rounding` makes an integer (.rni, .rzi, .rmi, .rpi)
    bool ftz = false;
    bool saturate = false;
};
static_assert(sizeof(Conversion) == sizeof(std::uint64_t));

using Integers = std::array<std::uint64_t, kWarpSize>;
using Doubles = std::array<double, kWarpSize>;

/// A register's lanes, zero-extended.
Integers read_register(const Warp& warp, Slot slot, unsigned bits) {
    Integers values;
    if (bits == 64) {
        std::copy_n(warp.lanes_of<std::uint64_t>(slot), kWarpSize, values.begin());
    } else {
        std::copy_n(warp.lanes_of<std::uint32_t>(slot), kWarpSize, values.begin());
    }
    return values;
}

/// The low bits of the values become the register.
void write_register(Warp& warp, Slot slot, unsigned bits, const Integers& values) {
    if (bits == 64) return warp.commit(slot, values);
    const std::uint32_t mask = bits == 32 ? 0xFFFFFFFF : (1U << bits) - 1;
    alignas(64) std::array<std::uint32_t, kWarpSize> narrow;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) narrow[lane] = static_cast<std::uint32_t>(values[lane]) & mask;
    warp.commit(slot, narrow);
}

template <typename T>
void extend_as(Integers& values) {
    for (auto& value : values) value = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<T>(value)));
}

/// Reads the low bits of every value as an integer type and extends it to 64 bits.
void extend(Integers& values, Type type) {
    switch (type) {
        case Type::u8:
            return extend_as<std::uint8_t>(values);
        case Type::u16:
            return extend_as<std::uint16_t>(values);
        case Type::u32:
            return extend_as<std::uint32_t>(values);
        case Type::s8:
            return extend_as<std::int8_t>(values);
        case Type::s16:
            return extend_as<std::int16_t>(values);
        case Type::s32:
            return extend_as<std::int32_t>(values);
        default:
            return;
    }
}

/// The limits of an integer type.
struct Range {
    std::int64_t least;
    std::uint64_t most;
};

Range range_of(Type type) {
    const unsigned bits = bits_of(type);
    if (!is_signed(type)) return {0, bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1};
    const std::uint64_t most = (std::uint64_t{1} << (bits - 1)) - 1;
    return {-static_cast<std::int64_t>(most) - 1, most};
}

Outcome integer_to_integer(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto conversion = std::bit_cast<Conversion>(i.immediate);
    Integers values = read_register(warp, i.slots[1], conversion.from_bits);
    extend(values, conversion.from);
    if (conversion.saturate) {
        const auto [least, most] = range_of(conversion.to);
        for (auto& value : values) {
            const bool negative = is_signed(conversion.from) && static_cast<std::int64_t>(value) < 0;
            if (negative) {
                value = static_cast<std::uint64_t>(std::max(static_cast<std::int64_t>(value), least));
            } else {
                value = std::min(value, most);
            }
        }
    }
    extend(values, conversion.to);
    write_register(warp, i.slots[0], conversion.to_bits, values);
    return Outcome::next;
}

double flush(double value) { return std::fabs(value) < 0x1p-126 ? std::copysign(0.0, value) : value; }

/// The source's lanes as doubles, which hold every value of every floating-point type.
Doubles read_floats(const Warp& warp, const Decoded& i, const Conversion& conversion) {
    const Integers bits = read_register(warp, i.slots[1], conversion.from_bits);
    Doubles values;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        switch (conversion.from) {
            case Type::f16:
                values[lane] = to_float(Half{static_cast<std::uint16_t>(bits[lane])});
                break;
            case Type::bf16:
                values[lane] = to_float(BFloat16{static_cast<std::uint16_t>(bits[lane])});
                break;
            case Type::f32:
                values[lane] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[lane]));
                break;
            default:
                values[lane] = std::bit_cast<double>(bits[lane]);
                break;
        }
        if (conversion.ftz && conversion.from == Type::f32) values[lane] = flush(values[lane]);
    }
    return values;
}

void round_to_integers(Doubles& values, Rounding rounding) {
    switch (rounding) {
        case Rounding::nearest:
            std::ranges::transform(values, values.begin(), [](double x) { return std::nearbyint(x); });
            break;
        case Rounding::zero:
            std::ranges::transform(values, values.begin(), [](double x) { return std::trunc(x); });
            break;
        case Rounding::down:
            std::ranges::transform(values, values.begin(), [](double x) { return std::floor(x); });
            break;
        case Rounding::up:
            std::ranges::transform(values, values.begin(), [](double x) { return std::ceil(x); });
            break;
    }
}

/// Clamped to the type. NaN becomes 0, but 2^(bits - 1) if one of the types has 64 bits (PTX ISA 9.7.9.21).
std::uint64_t clamp_to_integer(double value, const Conversion& conversion) {
    const auto [least, most] = range_of(conversion.to);
    const unsigned bits = bits_of(conversion.to);
    if (std::isnan(value)) {
        return conversion.from == Type::f64 || bits == 64 ? std::uint64_t{1} << (bits - 1) : 0;
    }
    if (value <= static_cast<double>(least)) return static_cast<std::uint64_t>(least);
    if (value >= std::ldexp(1.0, static_cast<int>(bits) - (is_signed(conversion.to) ? 1 : 0))) return most;
    return value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
}

Outcome float_to_integer(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto conversion = std::bit_cast<Conversion>(i.immediate);
    Doubles values = read_floats(warp, i, conversion);
    round_to_integers(values, conversion.rounding);
    Integers result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = clamp_to_integer(values[lane], conversion);
    extend(result, conversion.to);
    write_register(warp, i.slots[0], conversion.to_bits, result);
    return Outcome::next;
}

/// A result's bits after .sat (into [0, 1], NaN to +0).
std::uint64_t finish(std::uint64_t bits, const Conversion& conversion) {
    if (conversion.saturate) {
        const std::uint64_t sign = std::uint64_t{1} << (bits_of(conversion.to) - 1);
        const std::uint64_t one = round_to_type(1.0, conversion.to, Rounding::nearest);
        const std::uint64_t infinity =
            round_to_type(std::numeric_limits<double>::infinity(), conversion.to, Rounding::nearest);
        if ((bits & sign) != 0 || bits > infinity) return 0;
        bits = std::min(bits, one);
    }
    return bits;
}

/// Whether .ftz makes a number zero that is rounded to fp32: where the result would be subnormal if the exponent had no
/// limit, so also where the subnormal numbers' coarser grid rounds up to the least normal number (measured on H200).
bool is_flushed(double value, const Conversion& conversion, Rounding rounding) {
    constexpr double kScale = 0x1p64;
    constexpr std::uint64_t kLeastNormal = std::uint64_t{127 - 126 + 64} << 23;
    if (!conversion.ftz || conversion.to != Type::f32 || std::isnan(value)) return false;
    return (round_to_type(value * kScale, Type::f32, rounding) & 0x7FFFFFFF) < kLeastNormal;
}

/// Bits of the fraction field.
unsigned fraction_bits(Type type) {
    switch (type) {
        case Type::f16:
            return 10;
        case Type::bf16:
            return 7;
        case Type::f32:
            return 23;
        default:
            return 52;
    }
}

/// A NaN that comes from fp64 or goes there keeps its sign and as much of its payload as fits, and becomes quiet
/// (measured on H200).
std::uint64_t convert_nan(std::uint64_t bits, const Conversion& conversion) {
    if (conversion.ftz && conversion.from == Type::f32) bits = kNan32;
    const unsigned from_fraction = fraction_bits(conversion.from);
    const unsigned to_fraction = fraction_bits(conversion.to);
    const std::uint64_t sign = bits >> (bits_of(conversion.from) - 1) & 1;
    const std::uint64_t payload = bits << (64 - from_fraction) >> (64 - to_fraction);
    const std::uint64_t infinity =
        round_to_type(std::numeric_limits<double>::infinity(), conversion.to, Rounding::nearest);
    return sign << (bits_of(conversion.to) - 1) | infinity | std::uint64_t{1} << (to_fraction - 1) | payload;
}

Outcome float_to_float(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto conversion = std::bit_cast<Conversion>(i.immediate);
    const Integers bits = read_register(warp, i.slots[1], conversion.from_bits);
    const bool keeps_nan = (conversion.from == Type::f64 || conversion.to == Type::f64) && !conversion.saturate;
    Doubles values = read_floats(warp, i, conversion);
    if (conversion.to_integer) round_to_integers(values, conversion.rounding);
    const Rounding rounding = conversion.to_integer ? Rounding::nearest : conversion.rounding;
    Integers result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (is_flushed(values[lane], conversion, rounding)) values[lane] = std::copysign(0.0, values[lane]);
        result[lane] = keeps_nan && is_nan(values[lane])
                           ? convert_nan(bits[lane], conversion)
                           : finish(round_to_type(values[lane], conversion.to, rounding), conversion);
    }
    write_register(warp, i.slots[0], conversion.to_bits, result);
    return Outcome::next;
}

Outcome integer_to_float(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto conversion = std::bit_cast<Conversion>(i.immediate);
    Integers values = read_register(warp, i.slots[1], conversion.from_bits);
    extend(values, conversion.from);
    for (auto& value : values) {
        const bool negative = is_signed(conversion.from) && static_cast<std::int64_t>(value) < 0;
        const std::uint64_t magnitude = negative ? std::uint64_t{0} - value : value;
        value = finish(round_to_type(negative, magnitude, 0, conversion.to, conversion.rounding), conversion);
    }
    write_register(warp, i.slots[0], conversion.to_bits, values);
    return Outcome::next;
}

// The executors of common pairs.

template <typename To>
struct Convert {
    template <typename From>
    static To apply(From value) {
        return static_cast<To>(value);
    }
};

struct Copy {
    template <typename T>
    static T apply(T value) {
        return value;
    }
};

struct Widen {
    template <typename T>
    static float apply(T value) {
        return to_float(value);
    }
};

template <typename T>
struct Narrow {
    static T apply(float value) { return round_to<T>(value); }
};

Execute choose_common(const Conversion& c) {
    const bool exact_registers = c.from_bits == bits_of(c.from) && c.to_bits == bits_of(c.to);
    if (!exact_registers || c.ftz || c.saturate || c.to_integer || c.rounding != Rounding::nearest) return nullptr;
    if (c.from == c.to) {
        // These two make a NaN the canonical one; the wider types keep it (measured on H200).
        if (c.to == Type::f16 || c.to == Type::bf16) return nullptr;
        return bits_of(c.to) == 64 ? &execute_lanes<Copy, std::uint64_t, std::uint64_t>
                                   : &execute_lanes<Copy, std::uint32_t, std::uint32_t>;
    }
    if (c.to == Type::f32) {
        switch (c.from) {
            case Type::f16:
                return &execute_lanes<Widen, float, Half>;
            case Type::bf16:
                return &execute_lanes<Widen, float, BFloat16>;
            case Type::s32:
                return &execute_lanes<Convert<float>, float, std::int32_t>;
            case Type::u32:
                return &execute_lanes<Convert<float>, float, std::uint32_t>;
            default:
                return nullptr;
        }
    }
    if (c.from != Type::f32) return nullptr;
    switch (c.to) {
        case Type::f16:
            return &execute_lanes<Narrow<Half>, Half, float>;
        case Type::bf16:
            return &execute_lanes<Narrow<BFloat16>, BFloat16, float>;
        default:
            return nullptr;
    }
}

bool is_simulated(Type type) {
    const bool packed = type == Type::f16x2 || type == Type::bf16x2 || type == Type::f32x2 || type == Type::u16x2 ||
                        type == Type::s16x2;
    return !packed && type != Type::tf32 && (is_float(type) || is_signed(type) || is_unsigned(type));
}

/// Whether no rounding has to be named: where the conversion is exact.
bool is_exact(const Conversion& c) {
    if (c.from == c.to) return true;
    switch (c.from) {
        // Between these two ptxas takes a conversion without a rounding, and makes one to nearest of it.
        case Type::f16:
        case Type::bf16:
            return is_float(c.to);
        case Type::f32:
            return c.to == Type::f64;
        default:
            return false;
    }
}

void decode_convert(Decoder& d) {
    if (decode_packed_conversion(d)) return;
    const auto integer_rounding = d.take_one<Rounding>(
        {{"rni", Rounding::nearest}, {"rzi", Rounding::zero}, {"rmi", Rounding::down}, {"rpi", Rounding::up}});
    Conversion c;
    c.to = d.take_type();
    const auto float_rounding = d.take_one<Rounding>(
        {{"rn", Rounding::nearest}, {"rz", Rounding::zero}, {"rm", Rounding::down}, {"rp", Rounding::up}});
    c.ftz = d.take("ftz");
    c.saturate = d.take("sat");
    c.from = d.take_type();
    d.finish_modifiers();
    d.expect_operands(2);
    if (!is_simulated(c.to) || !is_simulated(c.from)) d.refuse("a conversion between these types is not simulated");
    if (integer_rounding && float_rounding) d.refuse("two roundings");
    // A rounding that could tell finds fp32 subnormals unflushed on their way to fp16 (measured on H200).
    if (c.to == Type::f16) c.ftz = false;
    c.to_integer = integer_rounding.has_value();
    c.rounding = integer_rounding ? *integer_rounding : float_rounding.value_or(Rounding::nearest);
    // A shift, which also keeps NaNs, whatever rounding is named (measured on H200).
    if (c.from == Type::bf16 && c.to == Type::f32) c.rounding = Rounding::nearest;

    const auto from = d.wide_source(1, c.from);
    const auto to = d.wide_destination(d.operand(0), c.to);
    c.from_bits = static_cast<std::uint8_t>(from.bits);
    c.to_bits = static_cast<std::uint8_t>(to.bits);
    d.result.slots[0] = to.slot;
    d.result.slots[1] = from.slot;
    d.result.immediate = std::bit_cast<std::uint64_t>(c);

    if (!is_float(c.from) && !is_float(c.to)) {
        if (integer_rounding || float_rounding || c.ftz) d.refuse("a conversion between integers has no rounding");
        d.result.execute = &integer_to_integer;
    } else if (!is_float(c.to)) {
        if (!integer_rounding) d.refuse("the rounding is missing, such as .rzi");
        d.result.execute = &float_to_integer;
    } else if (!is_float(c.from)) {
        if (!float_rounding) d.refuse("the rounding is missing, such as .rn");
        d.result.execute = &integer_to_float;
    } else {
        const bool has_rounding = integer_rounding || float_rounding;
        if (!has_rounding && !is_exact(c)) d.refuse("the rounding is missing, such as .rn");
        if (integer_rounding && c.from != c.to) d.refuse("a rounding to integers is between the same types");
        d.result.execute = &float_to_float;
    }
    if (const Execute common = choose_common(c)) d.result.execute = common;
}

constexpr std::array kOpcodes{Opcode{"cvt", decode_convert}};

}  // namespace

std::span<const Opcode> conversion_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
