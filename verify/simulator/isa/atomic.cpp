/// Atomic operations and reductions (PTX ISA 9.7.13.5, 9.7.13.6). The lanes of a warp take their turns from the lowest
/// up; CTAs on other host threads may come in between.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/extremum.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/isa/special_values.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cell.h"
#include "verify/simulator/machine/memory_access.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

// Operations: the new value, from the old one and the operands b and c.

struct Add {
    template <typename T>
    static T apply(T old, T b, T) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    }
};

/// In global memory the second of two NaNs wins, and stays as it is; in shared memory the first one wins and becomes
/// quiet (measured on H200).
struct AddDouble {
    static double apply(double old, double b, bool in_shared_memory) {
        if (!is_nan(old) && !is_nan(b)) return canonical(old + b);
        if (in_shared_memory) return quiet(is_nan(old) ? old : b);
        return is_nan(b) ? b : old;
    }

  private:
    static double canonical(double sum) { return is_nan(sum) ? std::bit_cast<double>(kNan64) : sum; }
};

/// Subnormal operands and sums become zeros in global memory, but not in shared memory (PTX ISA 9.7.13.5).
struct AddFloat {
    static float apply(float old, float b, bool in_shared_memory) {
        return in_shared_memory ? sum(old, b) : flush(sum(flush(old), flush(b)));
    }

  private:
    static float sum(float a, float b) {
        const float result = a + b;
        return result != result ? std::bit_cast<float>(kNan32) : result;
    }
};

/// An element of a vector.
struct AddFloatInGlobalMemory {
    static float apply(float old, float b, float) { return AddFloat::apply(old, b, false); }
};

/// The sum of one or two 16-bit numbers, rounded once (.noftz).
template <typename Part, unsigned parts>
struct AddSixteen {
    template <typename T>
    static T apply(T old, T b, T) {
        std::uint32_t result = 0;
        for (unsigned part = 0; part < parts; ++part) {
            const auto at = [part](T value) {
                return to_float(Part{static_cast<std::uint16_t>(value >> (16 * part))});
            };
            result |= std::uint32_t{round_to<Part>(at(old) + at(b)).bits} << (16 * part);
        }
        return static_cast<T>(result);
    }
};

struct Minimum {
    template <typename T>
    static T apply(T old, T b, T) {
        return b < old ? b : old;
    }
};

struct Maximum {
    template <typename T>
    static T apply(T old, T b, T) {
        return b > old ? b : old;
    }
};

struct And {
    template <typename T>
    static T apply(T old, T b, T) {
        return old & b;
    }
};

struct Or {
    template <typename T>
    static T apply(T old, T b, T) {
        return old | b;
    }
};

struct Xor {
    template <typename T>
    static T apply(T old, T b, T) {
        return old ^ b;
    }
};

struct Exchange {
    template <typename T>
    static T apply(T, T b, T) {
        return b;
    }
};

struct CompareAndSwap {
    template <typename T>
    static T apply(T old, T b, T c) {
        return old == b ? c : old;
    }
};

/// Counts up to b, then starts at 0 again.
struct Increment {
    template <typename T>
    static T apply(T old, T b, T) {
        return old >= b ? 0 : old + 1;
    }
};

/// Counts down to 0, then starts at b again.
struct Decrement {
    template <typename T>
    static T apply(T old, T b, T) {
        return old == 0 || old > b ? b : old - 1;
    }
};

bool in_shared_memory(const Decoded& i, std::uint64_t address) {
    return i.generic ? (address & ~(kWindowBytes - 1)) == kSharedWindow : i.space == ptx::Space::shared;
}

/// slots: old value, address, b, c.
template <typename Operation, typename T>
Outcome execute_atomic(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    warp.require(i, i.slots[2], i.slots[3]);
    WarpAccess access;
    find_bytes(warp, i, AccessKind::atomic, addresses, ~0U, access);
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, Cell<T>>;
    const auto* b = warp.lanes_of<Cell<T>>(i.slots[2]);
    const auto* c = warp.lanes_of<Cell<T>>(i.slots[3]);
    alignas(64) Lanes<T> result;
    result.fill(static_cast<Bits>(kPoison));
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const std::atomic_ref<Bits> cell(*reinterpret_cast<Bits*>(access.data[lane]));
        const auto update = [&](T old) {
            if constexpr (std::is_floating_point_v<T>) {
                return Operation::apply(old, from_cell<T>(b[lane]), in_shared_memory(i, addresses[lane]));
            } else {
                return Operation::apply(old, from_cell<T>(b[lane]), from_cell<T>(c[lane]));
            }
        };
        Bits old = cell.load();
        while (!cell.compare_exchange_weak(old, static_cast<Bits>(to_cell<T>(update(from_cell<T>(old)))))) {
        }
        result[lane] = old;
        if (access.shadowed && access.shadow[lane] != nullptr) store_cell<Bits>(access.shadow[lane], kWritten<Bits>);
    }
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

/// The minimum or maximum of one or two 16-bit numbers (.noftz).
template <bool maximum, typename Part, unsigned parts>
struct ExtremumSixteen {
    template <typename T>
    static T apply(T old, T b, T) {
        std::uint32_t result = 0;
        for (unsigned part = 0; part < parts; ++part) {
            const auto at = [part](T value) {
                return to_float(Part{static_cast<std::uint16_t>(value >> (16 * part))});
            };
            result |= std::uint32_t{round_to<Part>(Extremum<maximum, false>::apply(at(old), at(b))).bits}
                      << (16 * part);
        }
        return static_cast<T>(result);
    }
};

/// One after the other, each of i.list.size() / 2 elements by itself: the list has the old values, then the operands.
template <typename Operation, typename T>
Outcome execute_vector_atomic(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    const std::size_t elements = i.list.size() / 2;
    for (std::size_t e = 0; e < elements; ++e) warp.require(i, i.list[elements + e]);
    WarpAccess access;
    find_bytes(warp, i, AccessKind::atomic, addresses, ~0U, access);
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, Cell<T>>;
    for (std::size_t e = 0; e < elements; ++e) {
        const auto* b = warp.lanes_of<Cell<T>>(i.list[elements + e]);
        alignas(64) Lanes<T> result;
        result.fill(static_cast<Bits>(kPoison));
        for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            std::byte* data = access.data[lane] + e * sizeof(Bits);
            const std::atomic_ref<Bits> cell(*reinterpret_cast<Bits*>(data));
            const auto update = [&](T old) { return Operation::apply(old, from_cell<T>(b[lane]), T{}); };
            Bits old = cell.load();
            while (!cell.compare_exchange_weak(old, static_cast<Bits>(to_cell<T>(update(from_cell<T>(old)))))) {
            }
            result[lane] = old;
            if (access.shadowed && access.shadow[lane] != nullptr) {
                store_cell<Bits>(access.shadow[lane] + e * sizeof(Bits), kWritten<Bits>);
            }
        }
        warp.commit(i.list[e], result);
    }
    return Outcome::next;
}

enum class Kind : std::uint8_t { add, min, max, and_, or_, xor_, exchange, compare_and_swap, increment, decrement };

template <typename Operation>
Execute choose_integer(Type type) {
    switch (type) {
        case Type::u32:
            return &execute_atomic<Operation, std::uint32_t>;
        case Type::u64:
            return &execute_atomic<Operation, std::uint64_t>;
        case Type::s32:
            return &execute_atomic<Operation, std::int32_t>;
        case Type::s64:
            return &execute_atomic<Operation, std::int64_t>;
        default:
            return nullptr;
    }
}

template <typename Operation>
Execute choose_bits(Type type) {
    switch (type) {
        case Type::b32:
            return &execute_atomic<Operation, std::uint32_t>;
        case Type::b64:
            return &execute_atomic<Operation, std::uint64_t>;
        default:
            return nullptr;
    }
}

Execute choose_add(Type type) {
    switch (type) {
        case Type::f32:
            return &execute_atomic<AddFloat, float>;
        case Type::f64:
            return &execute_atomic<AddDouble, double>;
        case Type::f16:
            return &execute_atomic<AddSixteen<Half, 1>, std::uint16_t>;
        case Type::bf16:
            return &execute_atomic<AddSixteen<BFloat16, 1>, std::uint16_t>;
        case Type::f16x2:
            return &execute_atomic<AddSixteen<Half, 2>, std::uint32_t>;
        case Type::bf16x2:
            return &execute_atomic<AddSixteen<BFloat16, 2>, std::uint32_t>;
        default:
            return choose_integer<Add>(type);
    }
}

Execute choose(Kind kind, Type type) {
    switch (kind) {
        case Kind::add:
            return choose_add(type);
        case Kind::min:
            return choose_integer<Minimum>(type);
        case Kind::max:
            return choose_integer<Maximum>(type);
        case Kind::and_:
            return choose_bits<And>(type);
        case Kind::or_:
            return choose_bits<Or>(type);
        case Kind::xor_:
            return choose_bits<Xor>(type);
        case Kind::exchange:
            return choose_bits<Exchange>(type);
        case Kind::compare_and_swap:
            return type == Type::b16 ? &execute_atomic<CompareAndSwap, std::uint16_t>
                                     : choose_bits<CompareAndSwap>(type);
        case Kind::increment:
            return type == Type::u32 ? &execute_atomic<Increment, std::uint32_t> : nullptr;
        case Kind::decrement:
            return type == Type::u32 ? &execute_atomic<Decrement, std::uint32_t> : nullptr;
    }
    return nullptr;
}

template <typename Part, unsigned parts>
Execute choose_vector_of_sixteen(Kind kind) {
    using T = std::conditional_t<parts == 1, std::uint16_t, std::uint32_t>;
    switch (kind) {
        case Kind::add:
            return &execute_vector_atomic<AddSixteen<Part, parts>, T>;
        case Kind::min:
            return &execute_vector_atomic<ExtremumSixteen<false, Part, parts>, T>;
        case Kind::max:
            return &execute_vector_atomic<ExtremumSixteen<true, Part, parts>, T>;
        default:
            return nullptr;
    }
}

Execute choose_vector(Kind kind, Type type) {
    switch (type) {
        case Type::f32:
            return kind == Kind::add ? &execute_vector_atomic<AddFloatInGlobalMemory, float> : nullptr;
        case Type::f16:
            return choose_vector_of_sixteen<Half, 1>(kind);
        case Type::bf16:
            return choose_vector_of_sixteen<BFloat16, 1>(kind);
        case Type::f16x2:
            return choose_vector_of_sixteen<Half, 2>(kind);
        case Type::bf16x2:
            return choose_vector_of_sixteen<BFloat16, 2>(kind);
        default:
            return nullptr;
    }
}

/// Vectors, which are in global memory: d, [a], b with d and b in braces.
void decode_vector(Decoder& d, bool returns, Kind kind, std::size_t elements) {
    const bool hint = d.take("L2::cache_hint");
    const Type type = d.take_type();
    d.finish_modifiers();
    const std::size_t first = returns ? 1 : 0;
    d.expect_operands(first + 2 + (hint ? 1U : 0U));
    const auto check = [&](const ptx::Operand& vector) {
        if (vector.kind == ptx::Operand::Kind::vector && vector.elements.size() == elements) return;
        d.refuse_operand(vector, "the vector's length and the modifier .v2, .v4 or .v8 disagree");
    };
    std::vector<Slot> slots;
    if (returns) check(d.operand(0));
    for (std::size_t e = 0; e < elements; ++e) {
        slots.push_back(returns ? d.destination(d.operand(0).elements[e], type) : d.builder().scratch(bits_of(type)));
    }
    check(d.operand(first + 1));
    for (const auto& element : d.operand(first + 1).elements) slots.push_back(d.source(element, type));
    d.result.list = d.builder().keep(slots);
    d.result.bytes = static_cast<std::uint16_t>(elements * bits_of(type) / 8);
    d.address(first, ptx::Space::global, 1);
    d.result.execute = d.required(choose_vector(kind, type), type);
}

void decode(Decoder& d, bool returns) {
    d.ignore({"relaxed", "acquire", "release", "acq_rel"});
    ignore_scope(d);
    const auto space = d.take_space();
    const auto kind = d.take_one<Kind>({{"add", Kind::add},
                                        {"min", Kind::min},
                                        {"max", Kind::max},
                                        {"and", Kind::and_},
                                        {"or", Kind::or_},
                                        {"xor", Kind::xor_},
                                        {"exch", Kind::exchange},
                                        {"cas", Kind::compare_and_swap},
                                        {"inc", Kind::increment},
                                        {"dec", Kind::decrement}});
    if (!kind) d.refuse("the operation is missing, such as .add");
    if (space && *space != ptx::Space::global && *space != ptx::Space::shared) {
        d.refuse("its state space is .global or .shared");
    }
    d.take("noftz");
    if (const auto elements = d.take_one<std::size_t>({{"v2", 2}, {"v4", 4}, {"v8", 8}})) {
        if (space == ptx::Space::shared) d.refuse("vectors are in global memory");
        return decode_vector(d, returns, *kind, *elements);
    }
    const bool hint = d.take("L2::cache_hint");
    const Type type = d.take_type();
    d.finish_modifiers();
    const bool swap = *kind == Kind::compare_and_swap;
    const std::size_t first = returns ? 1 : 0;
    d.expect_operands(first + (swap ? 3U : 2U) + (hint ? 1U : 0U));
    d.result.slots[0] = returns ? d.destination(0, type) : d.builder().scratch(bits_of(type));
    d.result.bytes = static_cast<std::uint16_t>(bits_of(type) / 8);
    d.address(first, space, 1);
    d.result.slots[2] = d.source(first + 1, type);
    d.result.slots[3] = swap ? d.source(first + 2, type) : d.result.slots[2];
    d.result.execute = d.required(choose(*kind, type), type);
}

constexpr std::array kOpcodes{
    Opcode{"atom", [](Decoder& d) { decode(d, true); }},
    Opcode{"red", [](Decoder& d) { decode(d, false); }},
};

}  // namespace

std::span<const Opcode> atomic_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
