/// Logic, shifts and bit fields (PTX ISA 9.7.1.14 to 9.7.1.25, 9.7.8).
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"

namespace block_attention::simulator {

namespace {

using B16 = Values<std::uint16_t, Type::b16>;
using B32 = Values<std::uint32_t, Type::b32>;
using B64 = Values<std::uint64_t, Type::b64>;

template <typename T>
constexpr unsigned kBits = 8 * sizeof(T);

// Logic.

struct And {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a & b);
    }
};

struct Or {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a | b);
    }
};

struct Xor {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};

struct Not {
    template <typename T>
    static T apply(T a) {
        return static_cast<T>(~a);
    }
};

/// 1 for 0, else 0.
struct LogicalNot {
    template <typename T>
    static T apply(T a) {
        return a == 0 ? 1 : 0;
    }
};

template <typename Operation>
Outcome execute_predicates(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2]);
    warp.commit_predicate(i.slots[0], Operation::apply(warp.predicate(i.slots[1]), warp.predicate(i.slots[2])));
    return Outcome::next;
}

Outcome execute_not_predicate(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    warp.commit_predicate(i.slots[0], ~warp.predicate(i.slots[1]));
    return Outcome::next;
}

template <typename Operation>
void decode_logic(Decoder& d) {
    const Type type = d.take_type();
    const Execute execute =
        type == Type::pred ? &execute_predicates<Operation> : choose<Operation, 2, B16, B32, B64>(type);
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = d.source(1, type);
    d.result.slots[2] = d.source(2, type);
}

template <typename Operation>
void decode_unary_logic(Decoder& d) {
    const Type type = d.take_type();
    Execute execute = choose<Operation, 1, B16, B32, B64>(type);
    if (std::is_same_v<Operation, Not> && type == Type::pred) execute = &execute_not_predicate;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = d.source(1, type);
}

/// Any function of three bits: bit (4a + 2b + c) of the table is its value (lop3.b32).
Outcome execute_lop3(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2], i.slots[3]);
    const auto* a = warp.lanes_of<std::uint32_t>(i.slots[1]);
    const auto* b = warp.lanes_of<std::uint32_t>(i.slots[2]);
    const auto* c = warp.lanes_of<std::uint32_t>(i.slots[3]);
    alignas(64) Lanes<std::uint32_t> result{};
    for (unsigned entry = 0; entry < 8; ++entry) {
        if ((i.immediate >> entry & 1) == 0) continue;
        const std::uint32_t not_a = (entry & 4) != 0 ? 0 : ~0U;
        const std::uint32_t not_b = (entry & 2) != 0 ? 0 : ~0U;
        const std::uint32_t not_c = (entry & 1) != 0 ? 0 : ~0U;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            result[lane] |= (a[lane] ^ not_a) & (b[lane] ^ not_b) & (c[lane] ^ not_c);
        }
    }
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

/// lop3 with a predicate: slots[4] becomes whether the result is not 0, combined with predicate list[0].
template <bool both>
Outcome execute_lop3_predicate(Warp& warp, const Decoded& i) {
    warp.require(i, i.list[0]);
    const LaneMask other = warp.predicate(i.list[0]) ^ i.flip;
    execute_lop3(warp, i);
    const auto* result = warp.lanes_of<std::uint32_t>(i.slots[0]);
    LaneMask not_zero = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) not_zero |= LaneMask{result[lane] != 0} << lane;
    warp.commit_predicate(i.slots[4], both ? not_zero & other : not_zero | other);
    return Outcome::next;
}

void decode_lop3(Decoder& d) {
    const auto both = d.take_one<bool>({{"and", true}, {"or", false}});
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(both ? 6 : 5);
    const ptx::Operand& destination = d.operand(0);
    if (both && destination.kind != ptx::Operand::Kind::pair) d.refuse_operand(destination, "a pair d|p is needed");
    d.result.slots[0] = d.destination(both ? destination.elements.at(0) : destination, Type::b32);
    for (std::size_t i = 1; i <= 3; ++i) d.result.slots[i] = d.source(i, Type::b32);
    const std::int64_t table = d.immediate(4);
    if (table < 0 || table > 255) d.refuse_operand(d.operand(4), "the look-up table is a number from 0 to 255");
    d.result.immediate = static_cast<std::uint64_t>(table);
    d.result.execute = &execute_lop3;
    if (!both) return;
    d.result.slots[4] = d.destination(destination.elements.at(1), Type::pred);
    const auto other = d.predicate_source(5);
    d.result.list = d.builder().keep(std::array{other.slot});
    d.result.flip = other.flip;
    d.result.execute = *both ? &execute_lop3_predicate<true> : &execute_lop3_predicate<false>;
}

// Shifts: amounts beyond the width shift everything out (PTX ISA 9.7.8.8, 9.7.8.9).

struct ShiftLeft {
    template <typename T>
    static T apply(T a, std::uint32_t amount) {
        using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
        return amount >= kBits<T> ? T{0} : static_cast<T>(Wide{a} << (amount & (kBits<T> - 1)));
    }
};

struct ShiftRight {
    template <typename T>
    static T apply(T a, std::uint32_t amount) {
        const std::uint32_t most = kBits<T> - 1;
        if constexpr (std::is_signed_v<T>) {
            return static_cast<T>(a >> (amount > most ? most : amount));
        } else {
            return amount > most ? T{0} : static_cast<T>(a >> (amount & most));
        }
    }
};

template <typename Operation, typename T>
constexpr Execute kShift = &execute_lanes<Operation, T, T, std::uint32_t>;

template <typename Operation>
void decode_shift(Decoder& d) {
    const Type type = d.take_type();
    Execute execute = nullptr;
    if (is_bits(type) || (is_unsigned(type) && std::is_same_v<Operation, ShiftRight>)) {
        const unsigned bits = bits_of(type);
        execute = bits == 16   ? kShift<Operation, std::uint16_t>
                  : bits == 32 ? kShift<Operation, std::uint32_t>
                  : bits == 64 ? kShift<Operation, std::uint64_t>
                               : nullptr;
    }
    if constexpr (std::is_same_v<Operation, ShiftRight>) {
        if (type == Type::s16) execute = kShift<Operation, std::int16_t>;
        if (type == Type::s32) execute = kShift<Operation, std::int32_t>;
        if (type == Type::s64) execute = kShift<Operation, std::int64_t>;
    }
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = d.source(1, type);
    d.result.slots[2] = d.source(2, Type::u32);
}

/// shf: the 64 bits b:a shifted, the high half for .l, the low half for .r.
template <bool left, bool wrap>
struct FunnelShift {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const std::uint32_t amount = wrap ? c & 31 : c > 32 ? 32 : c;
        const std::uint64_t both = std::uint64_t{b} << 32 | a;
        return static_cast<std::uint32_t>(left ? both << amount >> 32 : both >> amount);
    }
};

void decode_funnel_shift(Decoder& d) {
    const auto left = d.take_one<bool>({{"l", true}, {"r", false}});
    const auto wrap = d.take_one<bool>({{"wrap", true}, {"clamp", false}});
    if (!left || !wrap || d.take_type() != Type::b32) d.refuse("its form is shf.{l|r}.{wrap|clamp}.b32");
    d.finish_modifiers();
    d.expect_operands(4);
    d.result.slots[0] = d.destination(0, Type::b32);
    for (std::size_t i = 1; i <= 3; ++i) d.result.slots[i] = d.source(i, Type::b32);
    using U = std::uint32_t;
    d.result.execute = *left ? (*wrap ? &execute_lanes<FunnelShift<true, true>, U, U, U, U>
                                      : &execute_lanes<FunnelShift<true, false>, U, U, U, U>)
                             : (*wrap ? &execute_lanes<FunnelShift<false, true>, U, U, U, U>
                                      : &execute_lanes<FunnelShift<false, false>, U, U, U, U>);
}

/// The position or the length of a bit field. PTX asks for 0 to 255. Beyond that the 32-bit forms take the low byte,
/// the 64-bit ones the whole number (measured on H200).
template <typename T>
std::uint32_t field_operand(std::uint32_t value) {
    if constexpr (sizeof(T) == 4) return value & 0xFF;
    return value > kBits<T> ? kBits<T> : value;
}

struct BitFieldExtract {
    template <typename T>
    static T apply(T a, std::uint32_t b, std::uint32_t c) {
        using U = std::make_unsigned_t<T>;
        const std::uint32_t position = field_operand<T>(b);
        const std::uint32_t length = field_operand<T>(c);
        if (length == 0) return 0;
        const std::uint32_t last = position + length - 1 < kBits<T> - 1 ? position + length - 1 : kBits<T> - 1;
        const bool fill = std::is_signed_v<T> && (static_cast<U>(a) >> last & 1) != 0;
        const U field = position >= kBits<T> ? U{0} : static_cast<U>(a) >> position;
        const U mask = length >= kBits<T> ? static_cast<U>(-1) : (U{1} << length) - 1;
        // Bits of the field beyond the value's own end are the sign as well.
        const U inside = position >= kBits<T> ? U{0} : static_cast<U>(-1) >> position;
        return static_cast<T>((field & mask & inside) | (fill ? ~(mask & inside) : U{0}));
    }
};

struct BitFieldInsert {
    template <typename T>
    static T apply(T a, T b, std::uint32_t c, std::uint32_t d) {
        const std::uint32_t position = field_operand<T>(c);
        const std::uint32_t length = field_operand<T>(d);
        if (position >= kBits<T>) return b;
        const T mask = (length >= kBits<T> ? static_cast<T>(-1) : static_cast<T>((T{1} << length) - 1)) << position;
        return static_cast<T>((b & ~mask) | (a << position & mask));
    }
};

void decode_bit_field_extract(Decoder& d) {
    const Type type = d.take_type();
    using P = std::uint32_t;
    const Execute execute = type == Type::u32   ? &execute_lanes<BitFieldExtract, std::uint32_t, std::uint32_t, P, P>
                            : type == Type::u64 ? &execute_lanes<BitFieldExtract, std::uint64_t, std::uint64_t, P, P>
                            : type == Type::s32 ? &execute_lanes<BitFieldExtract, std::int32_t, std::int32_t, P, P>
                            : type == Type::s64 ? &execute_lanes<BitFieldExtract, std::int64_t, std::int64_t, P, P>
                                                : nullptr;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(4);
    d.result.slots = {d.destination(0, type), d.source(1, type), d.source(2, Type::u32), d.source(3, Type::u32)};
}

void decode_bit_field_insert(Decoder& d) {
    const Type type = d.take_type();
    using P = std::uint32_t;
    const Execute execute =
        type == Type::b32   ? &execute_lanes<BitFieldInsert, std::uint32_t, std::uint32_t, std::uint32_t, P, P>
        : type == Type::b64 ? &execute_lanes<BitFieldInsert, std::uint64_t, std::uint64_t, std::uint64_t, P, P>
                            : nullptr;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(5);
    d.result.slots = {d.destination(0, type), d.source(1, type), d.source(2, type), d.source(3, Type::u32),
                      d.source(4, Type::u32)};
}

// Counting and searching.

struct PopulationCount {
    template <typename T>
    static std::uint32_t apply(T a) {
        return static_cast<std::uint32_t>(std::popcount(a));
    }
};

struct CountLeadingZeros {
    template <typename T>
    static std::uint32_t apply(T a) {
        return static_cast<std::uint32_t>(std::countl_zero(a));
    }
};

/// The position of the highest bit that differs from the sign (0 for unsigned types), or all ones; as a shift amount:
/// how far that bit is from the top.
template <bool shift_amount>
struct FindBit {
    template <typename T>
    static std::uint32_t apply(T a) {
        using U = std::make_unsigned_t<T>;
        const U bits = std::is_signed_v<T> && a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
        if (bits == 0) return 0xFFFFFFFF;
        const auto above = static_cast<std::uint32_t>(std::countl_zero(bits));
        return shift_amount ? above : kBits<T> - 1 - above;
    }
};

struct ReverseBits {
    template <typename T>
    static T apply(T a) {
        T reversed = 0;
        for (unsigned bit = 0; bit < kBits<T>; ++bit) reversed = static_cast<T>(reversed << 1 | (a >> bit & 1));
        return reversed;
    }
};

template <typename Operation>
void decode_count(Decoder& d) {
    const Type type = d.take_type();
    const Execute execute = type == Type::b32   ? &execute_lanes<Operation, std::uint32_t, std::uint32_t>
                            : type == Type::b64 ? &execute_lanes<Operation, std::uint32_t, std::uint64_t>
                                                : nullptr;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::u32);
    d.result.slots[1] = d.source(1, type);
}

template <bool shift_amount>
Execute choose_find(Type type) {
    using Operation = FindBit<shift_amount>;
    switch (type) {
        case Type::u32:
            return &execute_lanes<Operation, std::uint32_t, std::uint32_t>;
        case Type::u64:
            return &execute_lanes<Operation, std::uint32_t, std::uint64_t>;
        case Type::s32:
            return &execute_lanes<Operation, std::uint32_t, std::int32_t>;
        case Type::s64:
            return &execute_lanes<Operation, std::uint32_t, std::int64_t>;
        default:
            return nullptr;
    }
}

void decode_find(Decoder& d) {
    const bool shift_amount = d.take("shiftamt");
    const Type type = d.take_type();
    d.result.execute = d.required(shift_amount ? choose_find<true>(type) : choose_find<false>(type), type);
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::u32);
    d.result.slots[1] = d.source(1, type);
}

void decode_reverse(Decoder& d) {
    const Type type = d.take_type();
    d.result.execute = d.required(choose<ReverseBits, 1, B32, B64>(type), type);
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = d.source(1, type);
}

/// The selector nibbles of prmt's special modes (PTX ISA 9.7.8.7), by the low two bits of operand c.
enum class PermuteMode : std::uint8_t { index, f4e, b4e, rc8, ecl, ecr, rc16 };

std::uint32_t permute_selectors(PermuteMode mode, std::uint32_t c) {
    constexpr std::array<std::array<std::uint32_t, 4>, 6> kSelectors{{
        {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
        {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
        {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
        {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
        {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
        {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
    }};
    if (mode == PermuteMode::index) return c;
    return kSelectors[static_cast<std::size_t>(mode) - 1][c & 3];
}

template <PermuteMode mode>
struct PermuteBytes {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
        const std::uint32_t selectors = permute_selectors(mode, c);
        std::uint32_t result = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t selector = selectors >> (4 * i) & 0xF;
            std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7))) & 0xFF;
            if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
            result |= byte << (8 * i);
        }
        return result;
    }
};

template <PermuteMode mode>
constexpr Execute kPermute =
    &execute_lanes<PermuteBytes<mode>, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

void decode_permute(Decoder& d) {
    const auto execute = d.take_one<Execute>({{"f4e", kPermute<PermuteMode::f4e>},
                                              {"b4e", kPermute<PermuteMode::b4e>},
                                              {"rc8", kPermute<PermuteMode::rc8>},
                                              {"ecl", kPermute<PermuteMode::ecl>},
                                              {"ecr", kPermute<PermuteMode::ecr>},
                                              {"rc16", kPermute<PermuteMode::rc16>}});
    d.result.execute = execute.value_or(kPermute<PermuteMode::index>);
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(4);
    d.result.slots[0] = d.destination(0, Type::b32);
    for (std::size_t i = 1; i <= 3; ++i) d.result.slots[i] = d.source(i, Type::b32);
}

constexpr std::array kOpcodes{
    Opcode{"and", decode_logic<And>},
    Opcode{"or", decode_logic<Or>},
    Opcode{"xor", decode_logic<Xor>},
    Opcode{"not", decode_unary_logic<Not>},
    Opcode{"cnot", decode_unary_logic<LogicalNot>},
    Opcode{"lop3", decode_lop3},
    Opcode{"shl", decode_shift<ShiftLeft>},
    Opcode{"shr", decode_shift<ShiftRight>},
    Opcode{"shf", decode_funnel_shift},
    Opcode{"bfe", decode_bit_field_extract},
    Opcode{"bfi", decode_bit_field_insert},
    Opcode{"popc", decode_count<PopulationCount>},
    Opcode{"clz", decode_count<CountLeadingZeros>},
    Opcode{"bfind", decode_find},
    Opcode{"brev", decode_reverse},
    Opcode{"prmt", decode_permute},
};

}  // namespace

std::span<const Opcode> bit_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
