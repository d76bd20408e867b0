/// Selection and classes of numbers (PTX ISA 9.7.6 and 9.7.7: selp, slct, testp).
#include <array>
#include <cmath>
#include <cstdint>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

namespace {

/// slots[0] = predicate slots[3] ? slots[1] : slots[2].
template <typename T>
Outcome execute_select(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2], i.slots[3]);
    const auto* a = warp.lanes_of<T>(i.slots[1]);
    const auto* b = warp.lanes_of<T>(i.slots[2]);
    const LaneMask predicate = warp.predicate(i.slots[3]) ^ i.flip;
    alignas(64) std::array<T, kWarpSize> result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = (predicate >> lane & 1) != 0 ? a[lane] : b[lane];
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

void decode_select(Decoder& d) {
    const Type type = d.take_type();
    d.finish_modifiers();
    d.expect_operands(4);
    const unsigned bits = bits_of(type);
    const Execute execute = bits == 16 || bits == 32 ? &execute_select<std::uint32_t>
                            : bits == 64             ? &execute_select<std::uint64_t>
                                                     : nullptr;
    d.result.execute = d.required(execute, type);
    const auto predicate = d.predicate_source(3);
    d.result.slots = {d.destination(0, type), d.source(1, type), d.source(2, type), predicate.slot};
    d.result.flip = predicate.flip;
}

/// A float whose subnormals count as zeros (.ftz).
struct FlushedFloat {
    float value = 0;
};

bool at_least_zero(std::int32_t value) { return value >= 0; }
bool at_least_zero(float value) { return value >= 0; }
bool at_least_zero(FlushedFloat flushed) { return flush(flushed.value) >= 0; }

/// slots[0] = slots[3] >= 0 ? slots[1] : slots[2] (slct).
template <typename C>
struct SelectBySign {
    template <typename T>
    static T apply(T a, T b, C c) {
        return at_least_zero(c) ? a : b;
    }
};

template <typename C>
Execute choose_select_by_sign(Type type) {
    using Operation = SelectBySign<C>;
    switch (bits_of(type)) {
        case 16:
        case 32:
            return &execute_lanes<Operation, std::uint32_t, std::uint32_t, std::uint32_t, C>;
        case 64:
            return &execute_lanes<Operation, std::uint64_t, std::uint64_t, std::uint64_t, C>;
        default:
            return nullptr;
    }
}

void decode_select_by_sign(Decoder& d) {
    const bool ftz = d.take("ftz");
    const Type type = d.take_type();
    const Type sign = d.take_type();
    d.finish_modifiers();
    d.expect_operands(4);
    Execute execute = nullptr;
    if (sign == Type::s32 && !ftz) execute = choose_select_by_sign<std::int32_t>(type);
    if (sign == Type::f32)
        execute = ftz ? choose_select_by_sign<FlushedFloat>(type) : choose_select_by_sign<float>(type);
    d.result.execute = d.required(execute, sign);
    d.result.slots = {d.destination(0, type), d.source(1, type), d.source(2, type), d.source(3, sign)};
}

/// The classes of testp.
enum class Class : std::uint8_t { finite, infinite, number, nan, normal, subnormal };

template <Class wanted, typename T>
Outcome execute_test(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* a = warp.lanes_of<Cell<T>>(i.slots[1]);
    LaneMask result = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const int found = std::fpclassify(from_cell<T>(a[lane]));
        bool holds = false;
        switch (wanted) {
            case Class::finite:
                holds = found != FP_INFINITE && found != FP_NAN;
                break;
            case Class::infinite:
                holds = found == FP_INFINITE;
                break;
            case Class::number:
                holds = found != FP_NAN;
                break;
            case Class::nan:
                holds = found == FP_NAN;
                break;
            case Class::normal:
                holds = found == FP_NORMAL || found == FP_ZERO;  // zeros too (measured on H200)
                break;
            case Class::subnormal:
                holds = found == FP_SUBNORMAL;
                break;
        }
        result |= LaneMask{holds} << lane;
    }
    warp.commit_predicate(i.slots[0], result);
    return Outcome::next;
}

template <typename T>
Execute choose_test(Class wanted) {
    switch (wanted) {
        case Class::finite:
            return &execute_test<Class::finite, T>;
        case Class::infinite:
            return &execute_test<Class::infinite, T>;
        case Class::number:
            return &execute_test<Class::number, T>;
        case Class::nan:
            return &execute_test<Class::nan, T>;
        case Class::normal:
            return &execute_test<Class::normal, T>;
        case Class::subnormal:
            return &execute_test<Class::subnormal, T>;
    }
    return nullptr;
}

void decode_test(Decoder& d) {
    const auto wanted = d.take_one<Class>({{"finite", Class::finite},
                                           {"infinite", Class::infinite},
                                           {"number", Class::number},
                                           {"notanumber", Class::nan},
                                           {"normal", Class::normal},
                                           {"subnormal", Class::subnormal}});
    if (!wanted) d.refuse("the property is missing, such as .finite");
    const Type type = d.take_type();
    const Execute execute = type == Type::f32   ? choose_test<float>(*wanted)
                            : type == Type::f64 ? choose_test<double>(*wanted)
                                                : nullptr;
    d.result.execute = d.required(execute, type);
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::pred);
    d.result.slots[1] = d.source(1, type);
}

constexpr std::array kOpcodes{
    Opcode{"selp", decode_select},
    Opcode{"slct", decode_select_by_sign},
    Opcode{"testp", decode_test},
};

}  // namespace

std::span<const Opcode> selection_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
