/// Comparison (PTX ISA 9.7.6, 9.7.7: setp, set).
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"

namespace block_attention::simulator {

namespace {

/// The ordered comparisons are false if an operand is NaN, the unordered ones (equ, ...) true.
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

/// .ne is ordered for floating-point types, unlike C++'s !=.
template <Comparison comparison, typename T>
bool compare(T a, T b) {
    const bool unordered = a != a || b != b;
    switch (comparison) {
        case Comparison::eq:
            return a == b;
        case Comparison::ne:
            return a != b && !unordered;
        case Comparison::lt:
            return a < b;
        case Comparison::le:
            return a <= b;
        case Comparison::gt:
            return a > b;
        case Comparison::ge:
            return a >= b;
        case Comparison::equ:
            return a == b || unordered;
        case Comparison::neu:
            return a != b;
        case Comparison::ltu:
            return a < b || unordered;
        case Comparison::leu:
            return a <= b || unordered;
        case Comparison::gtu:
            return a > b || unordered;
        case Comparison::geu:
            return a >= b || unordered;
        case Comparison::num:
            return !unordered;
        case Comparison::nan:
            return unordered;
    }
    return false;
}

/// A float whose subnormals count as zeros (.ftz).
struct FlushedFloat {
    float value = 0;
};

struct FlushedHalf {
    Half value;
};

template <typename T>
auto comparable(T value) {
    if constexpr (std::is_same_v<T, FlushedFloat>) {
        return std::fabs(value.value) < 0x1p-126F ? 0.0F : value.value;
    } else if constexpr (std::is_same_v<T, FlushedHalf>) {
        const float number = to_float(value.value);
        return std::fabs(number) < 0x1p-14F ? 0.0F : number;
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        return to_float(value);
    } else {
        return value;
    }
}

/// Compares the values that begin at bit `shift` of the registers.
template <Comparison comparison, typename T>
LaneMask compare_lanes(Warp& warp, const Decoded& i, unsigned shift = 0) {
    warp.require(i, i.slots[1], i.slots[2]);
    const auto* a = warp.lanes_of<Cell<T>>(i.slots[1]);
    const auto* b = warp.lanes_of<Cell<T>>(i.slots[2]);
    LaneMask result = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const bool holds =
            compare<comparison>(comparable(from_cell<T>(a[lane] >> shift)), comparable(from_cell<T>(b[lane] >> shift)));
        result |= LaneMask{holds} << lane;
    }
    return result;
}

enum class Combine : std::uint8_t { none, and_, or_, xor_ };

LaneMask combine(Combine how, LaneMask a, LaneMask b) {
    switch (how) {
        case Combine::none:
            return a;
        case Combine::and_:
            return a & b;
        case Combine::or_:
            return a | b;
        case Combine::xor_:
            return a ^ b;
    }
    return a;
}

/// slots[0] = a comparison of slots[1] and slots[2].
template <Comparison comparison, typename T>
struct SetPredicate {
    static Outcome execute(Warp& warp, const Decoded& i) {
        warp.commit_predicate(i.slots[0], compare_lanes<comparison, T>(warp, i));
        return Outcome::next;
    }
};

/// The same, combined with predicate slots[4] as flags say; slots[3] gets the opposite comparison, combined alike.
template <Comparison comparison, typename T>
struct SetPredicates {
    static Outcome execute(Warp& warp, const Decoded& i) {
        const LaneMask holds = compare_lanes<comparison, T>(warp, i);
        warp.require(i, i.slots[4]);
        const LaneMask other = warp.predicate(i.slots[4]) ^ i.flip;
        warp.commit_predicate(i.slots[0], combine(Combine{i.flags}, holds, other));
        warp.commit_predicate(i.slots[3], combine(Combine{i.flags}, ~holds, other));
        return Outcome::next;
    }
};

/// slots[0] = immediate or 0, as a 32-bit value (set).
template <Comparison comparison, typename T>
struct SetValue {
    static Outcome execute(Warp& warp, const Decoded& i) {
        LaneMask holds = compare_lanes<comparison, T>(warp, i);
        warp.require(i, i.slots[4]);
        holds = combine(Combine{i.flags}, holds, warp.predicate(i.slots[4]) ^ i.flip);
        alignas(64) Lanes<std::uint32_t> result;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            result[lane] = (holds >> lane & 1) != 0 ? static_cast<std::uint32_t>(i.immediate) : 0;
        }
        warp.commit(i.slots[0], result);
        return Outcome::next;
    }
};

/// setp on two values in a register: slots[0] compares the low ones, slots[3] the high ones.
template <Comparison comparison, typename T>
struct SetPredicateOfEach {
    static Outcome execute(Warp& warp, const Decoded& i) {
        const LaneMask low = compare_lanes<comparison, T>(warp, i);
        const LaneMask high = compare_lanes<comparison, T>(warp, i, 16);
        warp.require(i, i.slots[4]);
        const LaneMask other = warp.predicate(i.slots[4]) ^ i.flip;
        warp.commit_predicate(i.slots[0], combine(Combine{i.flags}, low, other));
        warp.commit_predicate(i.slots[3], combine(Combine{i.flags}, high, other));
        return Outcome::next;
    }
};

/// set on two values in a register.
template <Comparison comparison, typename T>
struct SetValues {
    static Outcome execute(Warp& warp, const Decoded& i) {
        const LaneMask low = compare_lanes<comparison, T>(warp, i);
        const LaneMask high = compare_lanes<comparison, T>(warp, i, 16);
        warp.require(i, i.slots[4]);
        const LaneMask other = warp.predicate(i.slots[4]) ^ i.flip;
        const LaneMask low_holds = combine(Combine{i.flags}, low, other);
        const LaneMask high_holds = combine(Combine{i.flags}, high, other);
        const auto one = static_cast<std::uint32_t>(i.immediate);
        alignas(64) Lanes<std::uint32_t> result;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            result[lane] = ((low_holds >> lane & 1) != 0 ? one : 0) | ((high_holds >> lane & 1) != 0 ? one << 16 : 0);
        }
        warp.commit(i.slots[0], result);
        return Outcome::next;
    }
};

/// Whether an executor takes registers with two values each, of the types f16 and bf16 then.
template <template <Comparison, typename> typename>
constexpr bool kOfPairs = false;
template <>
constexpr bool kOfPairs<SetPredicateOfEach> = true;
template <>
constexpr bool kOfPairs<SetValues> = true;

template <template <Comparison, typename> typename Executor, Comparison comparison>
Execute choose_type(Type type, bool ftz) {
    constexpr bool kEquality = comparison == Comparison::eq || comparison == Comparison::ne;
    constexpr bool kInteger = comparison <= Comparison::ge;
    if constexpr (!kOfPairs<Executor>) {
        if (type == Type::f32) {
            return ftz ? &Executor<comparison, FlushedFloat>::execute : &Executor<comparison, float>::execute;
        }
        if (type == Type::f64) return ftz ? nullptr : &Executor<comparison, double>::execute;
    }
    switch (type) {
        case Type::f16:
            return ftz ? &Executor<comparison, FlushedHalf>::execute : &Executor<comparison, Half>::execute;
        case Type::bf16:
            return ftz ? nullptr : &Executor<comparison, BFloat16>::execute;
        default:
            break;
    }
    if constexpr (kInteger && !kOfPairs<Executor>) {
        if (ftz || (is_bits(type) && !kEquality)) return nullptr;
        switch (type) {
            case Type::b16:
            case Type::u16:
                return &Executor<comparison, std::uint16_t>::execute;
            case Type::b32:
            case Type::u32:
                return &Executor<comparison, std::uint32_t>::execute;
            case Type::b64:
            case Type::u64:
                return &Executor<comparison, std::uint64_t>::execute;
            case Type::s16:
                return &Executor<comparison, std::int16_t>::execute;
            case Type::s32:
                return &Executor<comparison, std::int32_t>::execute;
            case Type::s64:
                return &Executor<comparison, std::int64_t>::execute;
            default:
                break;
        }
    }
    return nullptr;
}

template <template <Comparison, typename> typename Executor>
Execute choose_comparison(Comparison comparison, Type type, bool ftz) {
    switch (comparison) {
        case Comparison::eq:
            return choose_type<Executor, Comparison::eq>(type, ftz);
        case Comparison::ne:
            return choose_type<Executor, Comparison::ne>(type, ftz);
        case Comparison::lt:
            return choose_type<Executor, Comparison::lt>(type, ftz);
        case Comparison::le:
            return choose_type<Executor, Comparison::le>(type, ftz);
        case Comparison::gt:
            return choose_type<Executor, Comparison::gt>(type, ftz);
        case Comparison::ge:
            return choose_type<Executor, Comparison::ge>(type, ftz);
        case Comparison::equ:
            return choose_type<Executor, Comparison::equ>(type, ftz);
        case Comparison::neu:
            return choose_type<Executor, Comparison::neu>(type, ftz);
        case Comparison::ltu:
            return choose_type<Executor, Comparison::ltu>(type, ftz);
        case Comparison::leu:
            return choose_type<Executor, Comparison::leu>(type, ftz);
        case Comparison::gtu:
            return choose_type<Executor, Comparison::gtu>(type, ftz);
        case Comparison::geu:
            return choose_type<Executor, Comparison::geu>(type, ftz);
        case Comparison::num:
            return choose_type<Executor, Comparison::num>(type, ftz);
        case Comparison::nan:
            return choose_type<Executor, Comparison::nan>(type, ftz);
    }
    return nullptr;
}

/// What setp and set have in common.
struct ComparisonModifiers {
    Comparison comparison = Comparison::eq;
    Combine combine = Combine::none;
    bool ftz = false;
};

ComparisonModifiers take_comparison(Decoder& d) {
    ComparisonModifiers modifiers;
    const auto comparison = d.take_one<Comparison>({
        {"eq", Comparison::eq},
        {"ne", Comparison::ne},
        {"lt", Comparison::lt},
        {"le", Comparison::le},
        {"gt", Comparison::gt},
        {"ge", Comparison::ge},
        {"lo", Comparison::lt},
        {"ls", Comparison::le},
        {"hi", Comparison::gt},
        {"hs", Comparison::ge},
        {"equ", Comparison::equ},
        {"neu", Comparison::neu},
        {"ltu", Comparison::ltu},
        {"leu", Comparison::leu},
        {"gtu", Comparison::gtu},
        {"geu", Comparison::geu},
        {"num", Comparison::num},
        {"nan", Comparison::nan},
    });
    if (!comparison) d.refuse("the comparison is missing, such as .eq");
    modifiers.comparison = *comparison;
    modifiers.combine = d.take_one<Combine>({{"and", Combine::and_}, {"or", Combine::or_}, {"xor", Combine::xor_}})
                            .value_or(Combine::none);
    modifiers.ftz = d.take("ftz");
    return modifiers;
}

void decode_compared(Decoder& d, Type type, const ComparisonModifiers& modifiers) {
    d.expect_operands(modifiers.combine == Combine::none ? 3 : 4);
    d.result.slots[1] = d.source(1, type);
    d.result.slots[2] = d.source(2, type);
    d.result.flags = static_cast<std::uint8_t>(modifiers.combine);
    d.result.slots[4] = d.builder().constant(0, 1);
    if (modifiers.combine == Combine::none) return;
    const auto other = d.predicate_source(3);
    d.result.slots[4] = other.slot;
    d.result.flip = other.flip;
}

/// The type of each of two values in a register.
std::optional<Type> part_of(Type type) {
    if (type == Type::f16x2) return Type::f16;
    if (type == Type::bf16x2) return Type::bf16;
    return std::nullopt;
}

void decode_set_predicate(Decoder& d) {
    const auto modifiers = take_comparison(d);
    const Type type = d.take_type();
    d.finish_modifiers();
    d.expect_operands(3, 4);
    decode_compared(d, type, modifiers);
    const ptx::Operand& destination = d.operand(0);
    const bool pair = destination.kind == ptx::Operand::Kind::pair;
    if (const auto part = part_of(type)) {
        if (!pair) d.refuse_operand(destination, "a pair p|q is needed, a predicate for each of the two values");
        d.result.slots[0] = d.destination(destination.elements.at(0), Type::pred);
        d.result.slots[3] = d.destination(destination.elements.at(1), Type::pred);
        d.result.execute =
            d.required(choose_comparison<SetPredicateOfEach>(modifiers.comparison, *part, modifiers.ftz), type);
        return;
    }
    d.result.slots[0] = d.destination(pair ? destination.elements.at(0) : destination, Type::pred);
    d.result.slots[3] = pair ? d.destination(destination.elements.at(1), Type::pred) : d.builder().scratch(1);
    const bool simple = !pair && modifiers.combine == Combine::none;
    d.result.execute = d.required(simple ? choose_comparison<SetPredicate>(modifiers.comparison, type, modifiers.ftz)
                                         : choose_comparison<SetPredicates>(modifiers.comparison, type, modifiers.ftz),
                                  type);
}

/// What set writes where the comparison holds; nothing if it has no such result.
std::optional<std::uint64_t> value_of_true(Type result, Type compared) {
    switch (result) {
        case Type::u32:
        case Type::s32:
            return 0xFFFFFFFF;
        case Type::f32:
            return 0x3F800000;
        case Type::u16:
        case Type::s16:
            return compared == Type::f16 || compared == Type::bf16 ? std::optional<std::uint64_t>(0xFFFF)
                                                                   : std::nullopt;
        case Type::f16:
        case Type::f16x2:
            return 0x3C00;
        case Type::bf16:
        case Type::bf16x2:
            return 0x3F80;
        default:
            return std::nullopt;
    }
}

void decode_set(Decoder& d) {
    const auto modifiers = take_comparison(d);
    const Type result_type = d.take_type();
    const Type type = d.take_type();
    d.finish_modifiers();
    const auto value = value_of_true(result_type, type);
    if (!value || (part_of(type) && result_type != type)) d.refuse("it has no such result type for these operands");
    d.expect_operands(3, 4);
    decode_compared(d, type, modifiers);
    d.result.slots[0] = d.destination(0, result_type);
    d.result.immediate = *value;
    const auto part = part_of(type);
    d.result.execute = d.required(part ? choose_comparison<SetValues>(modifiers.comparison, *part, modifiers.ftz)
                                       : choose_comparison<SetValue>(modifiers.comparison, type, modifiers.ftz),
                                  type);
}

constexpr std::array kOpcodes{Opcode{"setp", decode_set_predicate}, Opcode{"set", decode_set}};

}  // namespace

std::span<const Opcode> compare_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
