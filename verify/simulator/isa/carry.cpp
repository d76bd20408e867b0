#include "verify/simulator/isa/carry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/wide_product.h"

namespace block_attention::simulator {

namespace {

enum class Operation : std::uint8_t { add, subtract, multiply_low, multiply_high };

// Decoded::flags: the operation, and these.
constexpr std::uint8_t kCarryIn = 0x10;
constexpr std::uint8_t kCarryOut = 0x20;

/// A sum, or a difference whose borrow counts as its carry.
template <typename U>
struct Sum {
    U value = 0;
    bool carry = false;
};

template <typename U>
Sum<U> add(U a, U b, bool carry) {
    const auto sum = static_cast<U>(a + b + (carry ? 1 : 0));
    return {sum, sum < a || (carry && sum == a)};
}

template <typename U>
Sum<U> subtract(U a, U b, bool borrow) {
    return {static_cast<U>(a - b - (borrow ? 1 : 0)), a < b || (borrow && a == b)};
}

/// slots: result, a, b, c, the carry flag.
template <typename T>
Outcome execute_carry(Warp& warp, const Decoded& i) {
    using U = std::make_unsigned_t<T>;
    warp.require(i, i.slots[1], i.slots[2], i.slots[3]);
    const bool carries_in = (i.flags & kCarryIn) != 0;
    if (carries_in) warp.require(i, i.slots[4]);
    const LaneMask carry_in = carries_in ? warp.predicate(i.slots[4]) : 0;
    const auto* a = warp.lanes_of<U>(i.slots[1]);
    const auto* b = warp.lanes_of<U>(i.slots[2]);
    const auto* c = warp.lanes_of<U>(i.slots[3]);
    alignas(64) Lanes<U> result;
    LaneMask carry_out = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const bool carry = (carry_in >> lane & 1) != 0;
        Sum<U> sum;
        switch (Operation(i.flags & 3)) {
            case Operation::add:
                sum = add(a[lane], b[lane], carry);
                break;
            case Operation::subtract:
                sum = subtract(a[lane], b[lane], carry);
                break;
            case Operation::multiply_low:
                sum = add(static_cast<U>(a[lane] * b[lane]), c[lane], carry);
                break;
            case Operation::multiply_high:
                sum = add(static_cast<U>(multiply_high(static_cast<T>(a[lane]), static_cast<T>(b[lane]))), c[lane],
                          carry);
                break;
        }
        result[lane] = sum.value;
        carry_out |= LaneMask{sum.carry} << lane;
    }
    warp.commit(i.slots[0], result);
    if ((i.flags & kCarryOut) != 0) warp.commit_predicate(i.slots[4], carry_out);
    return Outcome::next;
}

void decode(Decoder& d, Operation operation, CarryUse carry, std::size_t sources) {
    const Type type = d.take_type();
    const Execute execute = type == Type::u32   ? &execute_carry<std::uint32_t>
                            : type == Type::s32 ? &execute_carry<std::int32_t>
                            : type == Type::u64 ? &execute_carry<std::uint64_t>
                            : type == Type::s64 ? &execute_carry<std::int64_t>
                                                : nullptr;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(sources + 1);
    d.result.slots[0] = d.destination(0, type);
    for (std::size_t k = 1; k <= 3; ++k) d.result.slots[k] = d.source(std::min(k, sources), type);
    d.result.slots[4] = d.builder().carry_flag();
    d.result.flags = static_cast<std::uint8_t>(static_cast<std::uint8_t>(operation) | (carry.in ? kCarryIn : 0) |
                                               (carry.out ? kCarryOut : 0));
}

template <bool subtract>
void decode_sum(Decoder& d) {
    decode_carry_sum(d, subtract, {.in = true, .out = d.take("cc")});
}

constexpr std::array kOpcodes{
    Opcode{"addc", decode_sum<false>},
    Opcode{"subc", decode_sum<true>},
    Opcode{"madc", [](Decoder& d) { decode_carry_product(d, {.in = true, .out = d.take("cc")}); }},
};

}  // namespace

void decode_carry_sum(Decoder& d, bool subtract, CarryUse carry) {
    decode(d, subtract ? Operation::subtract : Operation::add, carry, 2);
}

void decode_carry_product(Decoder& d, CarryUse carry) {
    const auto operation = d.take_one<Operation>({{"lo", Operation::multiply_low}, {"hi", Operation::multiply_high}});
    if (!operation) d.refuse("one of .lo and .hi is missing");
    decode(d, *operation, carry, 3);
}

std::span<const Opcode> carry_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
