/// Masks and fields that begin at bit 0 (PTX ISA 9.7.1: bmsk, szext, fns).
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kBits = 32;

/// Bits 0 to length - 1, for a length of up to 32.
std::uint32_t low_bits(std::uint32_t length) { return static_cast<std::uint32_t>((std::uint64_t{1} << length) - 1); }

template <bool wrap>
std::uint32_t limited(std::uint32_t value) {
    return wrap ? value % kBits : std::min(value, kBits);
}

/// `length` ones from bit `position` on.
template <bool wrap>
struct Mask {
    static std::uint32_t apply(std::uint32_t position, std::uint32_t length) {
        return static_cast<std::uint32_t>(std::uint64_t{low_bits(limited<wrap>(length))} << limited<wrap>(position));
    }
};

/// The low `length` bits, extended.
template <bool wrap>
struct Extend {
    template <typename T>
    static T apply(T a, std::uint32_t length) {
        const std::uint32_t kept = limited<wrap>(length);
        const std::uint32_t mask = low_bits(kept);
        const auto bits = static_cast<std::uint32_t>(a);
        const bool negative = std::is_signed_v<T> && kept > 0 && (bits >> ((kept - 1) % kBits) & 1) != 0;
        return static_cast<T>(negative ? bits | ~mask : bits & mask);
    }
};

/// The position of the offset-th bit that is set, counted from bit `base` on, upwards or, for a negative offset,
/// downwards; offset 0 asks for bit `base` itself. All ones if there is none, but 0 for the least of all offsets, which
/// has no opposite (measured on H200).
struct FindSetBit {
    static std::uint32_t apply(std::uint32_t mask, std::uint32_t base, std::uint32_t offset) {
        const auto steps = static_cast<std::int32_t>(offset);
        if (steps == std::numeric_limits<std::int32_t>::min()) return 0;
        if (steps == 0) return (mask >> (base % kBits) & 1) != 0 ? base : ~0U;
        std::int64_t left = steps < 0 ? -std::int64_t{steps} : steps;
        for (std::int64_t bit = base; bit >= 0 && bit < kBits; bit += steps < 0 ? -1 : 1) {
            if ((mask >> bit & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(bit);
        }
        return ~0U;
    }
};

bool take_wrap(Decoder& d) {
    const auto wrap = d.take_one<bool>({{"wrap", true}, {"clamp", false}});
    if (!wrap) d.refuse("one of .clamp and .wrap is missing");
    return *wrap;
}

void decode_mask(Decoder& d) {
    const bool wrap = take_wrap(d);
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots = {d.destination(0, Type::b32), d.source(1, Type::u32), d.source(2, Type::u32)};
    using U = std::uint32_t;
    d.result.execute = wrap ? &execute_lanes<Mask<true>, U, U, U> : &execute_lanes<Mask<false>, U, U, U>;
}

void decode_extend(Decoder& d) {
    const bool wrap = take_wrap(d);
    const Type type = d.take_type();
    using U = std::uint32_t;
    using S = std::int32_t;
    Execute execute = nullptr;
    if (type == Type::u32)
        execute = wrap ? &execute_lanes<Extend<true>, U, U, U> : &execute_lanes<Extend<false>, U, U, U>;
    if (type == Type::s32)
        execute = wrap ? &execute_lanes<Extend<true>, S, S, U> : &execute_lanes<Extend<false>, S, S, U>;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots = {d.destination(0, type), d.source(1, type), d.source(2, Type::u32)};
}

void decode_find(Decoder& d) {
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(4);
    d.result.slots[0] = d.destination(0, Type::b32);
    for (std::size_t k = 1; k <= 3; ++k) d.result.slots[k] = d.source(k, Type::b32);
    using U = std::uint32_t;
    d.result.execute = &execute_lanes<FindSetBit, U, U, U, U>;
}

constexpr std::array kOpcodes{Opcode{"bmsk", decode_mask}, Opcode{"szext", decode_extend}, Opcode{"fns", decode_find}};

}  // namespace

std::span<const Opcode> mask_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
