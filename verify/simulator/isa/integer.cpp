/// Integer arithmetic (PTX ISA 9.7.1). Sums and products wrap around.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "verify/simulator/isa/carry.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/wide_product.h"

namespace block_attention::simulator {

namespace {

using U16 = Values<std::uint16_t, Type::u16, Type::s16>;
using U32 = Values<std::uint32_t, Type::u32, Type::s32>;
using U64 = Values<std::uint64_t, Type::u64, Type::s64>;
using ExactU16 = Values<std::uint16_t, Type::u16>;
using ExactU32 = Values<std::uint32_t, Type::u32>;
using ExactU64 = Values<std::uint64_t, Type::u64>;
using S16 = Values<std::int16_t, Type::s16>;
using S32 = Values<std::int32_t, Type::s32>;
using S64 = Values<std::int64_t, Type::s64>;

/// Where products and sums of a type are formed without C++ promoting it to a signed int.
template <typename T>
using Arithmetic = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

struct Add {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(Arithmetic<T>{a} + Arithmetic<T>{b});
    }
};

struct Subtract {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(Arithmetic<T>{a} - Arithmetic<T>{b});
    }
};

std::int32_t saturated(std::int64_t value) {
    using Limits = std::numeric_limits<std::int32_t>;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, Limits::min(), Limits::max()));
}

template <int sign>
struct AddSaturating {
    static std::int32_t apply(std::int32_t a, std::int32_t b) {
        return saturated(std::int64_t{a} + sign * std::int64_t{b});
    }
};

struct MultiplyLow {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(Arithmetic<T>{a} * Arithmetic<T>{b});
    }
};

struct MultiplyHigh {
    template <typename T>
    static T apply(T a, T b) {
        return multiply_high(a, b);
    }
};

struct MultiplyWide {
    template <typename T>
    static Wide<T> apply(T a, T b) {
        return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
    }
};

struct MultiplyAddLow {
    template <typename T>
    static T apply(T a, T b, T c) {
        return static_cast<T>(Arithmetic<T>{a} * Arithmetic<T>{b} + Arithmetic<T>{c});
    }
};

struct MultiplyAddHigh {
    template <typename T>
    static T apply(T a, T b, T c) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(Arithmetic<U>{static_cast<U>(multiply_high(a, b))} + Arithmetic<U>{static_cast<U>(c)});
    }
};

struct MultiplyAddHighSaturating {
    static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
        return saturated(std::int64_t{multiply_high(a, b)} + c);
    }
};

struct MultiplyAddWide {
    template <typename T>
    static Wide<T> apply(T a, T b, Wide<T> c) {
        using U = std::make_unsigned_t<Wide<T>>;
        return static_cast<Wide<T>>(static_cast<U>(MultiplyWide::apply(a, b)) + static_cast<U>(c));
    }
};

/// The low 24 bits of a value, extended as its type says.
template <typename T>
std::int64_t low24(T a) {
    const auto low = static_cast<std::uint32_t>(a) & 0xFFFFFF;
    return std::is_signed_v<T> && (low & 0x800000) != 0 ? std::int64_t{low} - 0x1000000 : std::int64_t{low};
}

/// Bits 0 to 31 of the 48-bit product of two 24-bit numbers, or bits 16 to 47 (mul24.lo, mul24.hi).
template <unsigned shift>
struct Multiply24 {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(low24(a) * low24(b) >> shift);
    }
};

template <unsigned shift>
struct MultiplyAdd24 {
    template <typename T>
    static T apply(T a, T b, T c) {
        return static_cast<T>(static_cast<std::uint64_t>(low24(a) * low24(b) >> shift) + static_cast<std::uint64_t>(c));
    }
};

struct MultiplyAddHigh24Saturating {
    static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
        return saturated(static_cast<std::int32_t>(low24(a) * low24(b) >> 16) + std::int64_t{c});
    }
};

/// PTX leaves a division by zero unspecified. Measured on H200: quotient and remainder have all bits set, in every
/// type. The one quotient that overflows wraps around.
struct Divide {
    template <typename T>
    static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if constexpr (std::is_signed_v<T>) {
            if (b == -1)
                return static_cast<T>(Arithmetic<std::make_unsigned_t<T>>{0} -
                                      static_cast<Arithmetic<std::make_unsigned_t<T>>>(a));
        }
        return static_cast<T>(a / b);
    }
};

struct Remainder {
    template <typename T>
    static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
};

struct Minimum {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? a : b;
    }
};

struct Maximum {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? b : a;
    }
};

struct Negate {
    template <typename T>
    static T apply(T a) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(Arithmetic<U>{0} - Arithmetic<U>{static_cast<U>(a)});
    }
};

struct Absolute {
    template <typename T>
    static T apply(T a) {
        return a < 0 ? Negate::apply(a) : a;
    }
};

/// |a - b| + c.
struct SumOfAbsoluteDifferences {
    template <typename T>
    static T apply(T a, T b, T c) {
        using U = std::make_unsigned_t<T>;
        const auto ua = Arithmetic<U>{static_cast<U>(a)};
        const auto ub = Arithmetic<U>{static_cast<U>(b)};
        return static_cast<T>((a < b ? ub - ua : ua - ub) + Arithmetic<U>{static_cast<U>(c)});
    }
};

/// Two 16-bit operations in a 32-bit register.
template <typename Operation, typename Half>
struct Both {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
        const auto low = Operation::apply(static_cast<Half>(a), static_cast<Half>(b));
        const auto high = Operation::apply(static_cast<Half>(a >> 16), static_cast<Half>(b >> 16));
        return std::uint32_t{static_cast<std::uint16_t>(high)} << 16 | static_cast<std::uint16_t>(low);
    }
};

/// Operands d, a, b, ... all of one type.
void decode_operands(Decoder& d, Type type, std::size_t sources) {
    d.finish_modifiers();
    d.expect_operands(sources + 1);
    d.result.slots[0] = d.destination(0, type);
    for (std::size_t i = 1; i <= sources; ++i) d.result.slots[i] = d.source(i, type);
}

template <typename Operation, int sign>
void decode_add(Decoder& d) {
    if (d.take("cc")) return decode_carry_sum(d, sign < 0, {.in = false, .out = true});
    const bool saturate = d.take("sat");
    const Type type = d.take_type();
    Execute execute = choose<Operation, 2, U16, U32, U64>(type);
    if (type == Type::u16x2 || type == Type::s16x2) {
        execute = &execute_lanes<Both<Operation, std::uint16_t>, std::uint32_t, std::uint32_t, std::uint32_t>;
    }
    if (saturate) execute = choose<AddSaturating<sign>, 2, S32>(type);
    d.result.execute = d.required(execute, type);
    decode_operands(d, type, 2);
}

enum class Part : std::uint8_t { low, high, wide };

Part take_part(Decoder& d) {
    const auto part = d.take_one<Part>({{"lo", Part::low}, {"hi", Part::high}, {"wide", Part::wide}});
    if (!part) d.refuse("one of .lo, .hi and .wide is missing");
    return *part;
}

Type wide_type(Type type) {
    switch (type) {
        case Type::u16:
            return Type::u32;
        case Type::s16:
            return Type::s32;
        case Type::u32:
            return Type::u64;
        default:
            return Type::s64;
    }
}

template <typename T>
constexpr Execute kMultiplyWide = &execute_lanes<MultiplyWide, Wide<T>, T, T>;
template <typename T>
constexpr Execute kMultiplyAddWide = &execute_lanes<MultiplyAddWide, Wide<T>, T, T, Wide<T>>;

Execute choose_wide(Type type, bool add) {
    switch (type) {
        case Type::u16:
            return add ? kMultiplyAddWide<std::uint16_t> : kMultiplyWide<std::uint16_t>;
        case Type::s16:
            return add ? kMultiplyAddWide<std::int16_t> : kMultiplyWide<std::int16_t>;
        case Type::u32:
            return add ? kMultiplyAddWide<std::uint32_t> : kMultiplyWide<std::uint32_t>;
        case Type::s32:
            return add ? kMultiplyAddWide<std::int32_t> : kMultiplyWide<std::int32_t>;
        default:
            return nullptr;
    }
}

/// mul and mad; mul on floating-point types is decoded in floating.cpp.
void decode_product(Decoder& d, bool add) {
    if (add && d.take("cc")) return decode_carry_product(d, {.in = false, .out = true});
    const Part part = take_part(d);
    const bool saturate = d.take("sat");
    const Type type = d.take_type();
    const std::size_t sources = add ? 3 : 2;
    if (saturate) {
        if (!add || part != Part::high) d.refuse("of products, mad.hi alone saturates");
        d.result.execute = d.required(choose<MultiplyAddHighSaturating, 3, S32>(type), type);
        return decode_operands(d, type, sources);
    }
    if (part == Part::wide) {
        d.result.execute = d.required(choose_wide(type, add), type);
        d.finish_modifiers();
        d.expect_operands(sources + 1);
        d.result.slots[0] = d.destination(0, wide_type(type));
        d.result.slots[1] = d.source(1, type);
        d.result.slots[2] = d.source(2, type);
        if (add) d.result.slots[3] = d.source(3, wide_type(type));
        return;
    }
    if (part == Part::low) {
        d.result.execute =
            add ? choose<MultiplyAddLow, 3, U16, U32, U64>(type) : choose<MultiplyLow, 2, U16, U32, U64>(type);
    } else {
        d.result.execute = add ? choose<MultiplyAddHigh, 3, ExactU16, ExactU32, ExactU64, S16, S32, S64>(type)
                               : choose<MultiplyHigh, 2, ExactU16, ExactU32, ExactU64, S16, S32, S64>(type);
    }
    d.result.execute = d.required(d.result.execute, type);
    decode_operands(d, type, sources);
}

void decode_product24(Decoder& d, bool add) {
    const Part part = take_part(d);
    const bool saturate = d.take("sat");
    const Type type = d.take_type();
    if (part == Part::wide) d.refuse("it takes .lo or .hi");
    const bool low = part == Part::low;
    if (saturate) {
        if (!add || low) d.refuse("of these products, mad24.hi alone saturates");
        d.result.execute = choose<MultiplyAddHigh24Saturating, 3, S32>(type);
    } else if (add) {
        d.result.execute =
            low ? choose<MultiplyAdd24<0>, 3, ExactU32, S32>(type) : choose<MultiplyAdd24<16>, 3, ExactU32, S32>(type);
    } else {
        d.result.execute =
            low ? choose<Multiply24<0>, 2, ExactU32, S32>(type) : choose<Multiply24<16>, 2, ExactU32, S32>(type);
    }
    d.result.execute = d.required(d.result.execute, type);
    decode_operands(d, type, add ? 3 : 2);
}

/// Below zero becomes zero.
template <typename Operation>
struct Rectified {
    template <typename T>
    static T apply(T a, T b) {
        return std::max<T>(Operation::apply(a, b), 0);
    }
};

template <typename Operation>
void decode_extremum(Decoder& d) {
    const bool relu = d.take("relu");
    const Type type = d.take_type();
    if (relu) {
        using Rectify = Rectified<Operation>;
        using U = std::uint32_t;
        d.result.execute = d.required(
            type == Type::s16x2 ? &execute_lanes<Both<Rectify, std::int16_t>, U, U, U> : choose<Rectify, 2, S32>(type),
            type);
        return decode_operands(d, type, 2);
    }
    Execute execute = choose<Operation, 2, ExactU16, ExactU32, ExactU64, S16, S32, S64>(type);
    if (type == Type::u16x2)
        execute = &execute_lanes<Both<Operation, std::uint16_t>, std::uint32_t, std::uint32_t, std::uint32_t>;
    if (type == Type::s16x2)
        execute = &execute_lanes<Both<Operation, std::int16_t>, std::uint32_t, std::uint32_t, std::uint32_t>;
    d.result.execute = d.required(execute, type);
    decode_operands(d, type, 2);
}

template <typename Operation, std::size_t sources>
void decode_any_integer(Decoder& d) {
    const Type type = d.take_type();
    d.result.execute = d.required(choose<Operation, sources, ExactU16, ExactU32, ExactU64, S16, S32, S64>(type), type);
    decode_operands(d, type, sources);
}

template <typename Operation>
void decode_signed(Decoder& d) {
    const Type type = d.take_type();
    d.result.execute = d.required(choose<Operation, 1, S16, S32, S64>(type), type);
    decode_operands(d, type, 1);
}

constexpr std::array kOpcodes{
    Opcode{"add", decode_add<Add, 1>},
    Opcode{"sub", decode_add<Subtract, -1>},
    Opcode{"mul", [](Decoder& d) { decode_product(d, false); }},
    Opcode{"mad", [](Decoder& d) { decode_product(d, true); }},
    Opcode{"mul24", [](Decoder& d) { decode_product24(d, false); }},
    Opcode{"mad24", [](Decoder& d) { decode_product24(d, true); }},
    Opcode{"sad", decode_any_integer<SumOfAbsoluteDifferences, 3>},
    Opcode{"div", decode_any_integer<Divide, 2>},
    Opcode{"rem", decode_any_integer<Remainder, 2>},
    Opcode{"min", decode_extremum<Minimum>},
    Opcode{"max", decode_extremum<Maximum>},
    Opcode{"neg", decode_signed<Negate>},
    Opcode{"abs", decode_signed<Absolute>},
};

}  // namespace

std::span<const Opcode> integer_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
