/// Loads and stores (PTX ISA 9.7.9). Cache operators, eviction priorities and prefetch sizes have no effect on data.
#include "verify/simulator/isa/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/machine/cell.h"
#include "verify/simulator/machine/memory_access.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint8_t kOrdered = 2;  ///< flag: acquire of a load, release of a store

/// A loaded value in a register of R's width: sign-extended if T is signed (PTX ISA 9.4.1).
template <typename T, typename R>
Cell<R> extend(T value) {
    return static_cast<R>(static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<R>, R>>(value));
}

template <typename T, typename R>
Outcome execute_load(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    WarpAccess access;
    find_bytes(warp, i, AccessKind::load, addresses, i.needed, access);
    for (std::size_t element = 0; element < i.list.size(); ++element) {
        const std::size_t at = element * sizeof(T);
        alignas(64) Lanes<R> result;
        if (access.uniform) {
            result.fill(extend<T, R>(load_cell<T>(access.data[0] + at)));
        } else {
            for (unsigned lane = 0; lane < kWarpSize; ++lane) {
                result[lane] = extend<T, R>(load_cell<T>(access.data[lane] + at));
            }
        }
        warp.commit(i.list[element], result);
    }
    if ((i.flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_acquire);
    return Outcome::next;
}

/// T in memory, C the register's cell.
template <typename T, typename C>
Outcome execute_store(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    for (const Slot source : i.list) warp.require(i, source);
    if ((i.flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_release);
    WarpAccess access;
    find_bytes(warp, i, AccessKind::store, addresses, 0, access);
    for (std::size_t element = 0; element < i.list.size(); ++element) {
        const std::size_t at = element * sizeof(T);
        const C* from = warp.lanes_of<C>(i.list[element]);
        for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            store_cell<T>(access.data[lane] + at, static_cast<T>(from[lane]));
            if (access.shadowed && access.shadow[lane] != nullptr) store_cell<T>(access.shadow[lane] + at, kWritten<T>);
        }
    }
    return Outcome::next;
}

/// A 128-bit element: its low and high 64 bits.
std::array<Slot, 2> halves_of(Slot slot) {
    return {slot, Slot{slot.offset + kWarpSize * static_cast<std::uint32_t>(sizeof(std::uint64_t)), slot.index}};
}

template <typename T>
Execute choose_load(unsigned register_bits) {
    switch (register_bits) {
        case 8:
        case 16:
            if constexpr (sizeof(T) <= 2) return &execute_load<T, std::uint16_t>;
            break;
        case 32:
            if constexpr (sizeof(T) <= 4) return &execute_load<T, std::uint32_t>;
            break;
        case 64:
            return &execute_load<T, std::uint64_t>;
        default:
            break;
    }
    return nullptr;
}

Execute choose_load(Type type, unsigned register_bits) {
    switch (bits_of(type)) {
        case 8:
            return is_signed(type) ? choose_load<std::int8_t>(register_bits) : choose_load<std::uint8_t>(register_bits);
        case 16:
            return is_signed(type) ? choose_load<std::int16_t>(register_bits)
                                   : choose_load<std::uint16_t>(register_bits);
        case 32:
            return is_signed(type) ? choose_load<std::int32_t>(register_bits)
                                   : choose_load<std::uint32_t>(register_bits);
        case 64:
            return choose_load<std::uint64_t>(register_bits);
        default:
            return nullptr;
    }
}

template <typename T>
Execute choose_store(unsigned register_bits) {
    if (register_bits == 64) return &execute_store<T, std::uint64_t>;
    if constexpr (sizeof(T) <= 4) return &execute_store<T, std::uint32_t>;
    return nullptr;
}

Execute choose_store(Type type, unsigned register_bits) {
    switch (bits_of(type)) {
        case 8:
            return choose_store<std::uint8_t>(register_bits);
        case 16:
            return choose_store<std::uint16_t>(register_bits);
        case 32:
            return choose_store<std::uint32_t>(register_bits);
        case 64:
            return choose_store<std::uint64_t>(register_bits);
        default:
            return nullptr;
    }
}

/// The modifiers that loads and stores share. Returns the number of elements.
std::size_t take_common(Decoder& d, bool& ordered) {
    ordered = d.take("acquire") || d.take("release");
    d.ignore({"weak", "relaxed", "volatile", "mmio"});
    ignore_scope(d);
    ignore_cache_hints(d);
    return d.take_one<std::size_t>({{"v2", 2}, {"v4", 4}, {"v8", 8}}).value_or(1);
}

/// The elements of operand `i`: a vector of `count`, or a single value.
std::vector<const ptx::Operand*> elements_of(Decoder& d, std::size_t i, std::size_t count) {
    std::vector<const ptx::Operand*> elements;
    const ptx::Operand& operand = d.operand(i);
    if (operand.kind != ptx::Operand::Kind::vector) {
        elements.push_back(&operand);
    } else {
        for (const auto& element : operand.elements) elements.push_back(&element);
    }
    if (elements.size() != count) {
        d.refuse_operand(operand, "the vector's length and the modifier .v2, .v4 or .v8 disagree");
    }
    return elements;
}

void set_bytes(Decoder& d, Type type, std::size_t elements) {
    const std::size_t bytes = elements * bits_of(type) / 8;
    if (bytes > kMaxAccessBytes || bits_of(type) < 8) d.refuse("an access has at most 32 bytes");
    d.result.bytes = static_cast<std::uint16_t>(bytes);
}

/// Whether anything in the kernel reads a register: compilers widen loads beyond what they use.
bool is_read(Decoder& d, const ptx::Operand& destination) {
    return destination.kind == ptx::Operand::Kind::register_ && d.builder().reads_of(destination.index) > 0;
}

/// Registers of one width for all elements, 128-bit ones as their halves.
struct Registers {
    std::vector<Slot> slots;
    unsigned bits = 0;
};

void add_register(Decoder& d, Registers& registers, Decoder::WideSlot wide) {
    if (registers.bits != 0 && registers.bits != wide.bits) d.refuse("the vector mixes registers of different widths");
    registers.bits = wide.bits;
    if (wide.bits == 128) {
        for (const Slot half : halves_of(wide.slot)) registers.slots.push_back(half);
    } else {
        registers.slots.push_back(wide.slot);
    }
}

void decode_load(Decoder& d) {
    d.ignore({"nc"});
    bool ordered = false;
    const std::size_t count = take_common(d, ordered);
    const auto space = d.take_space();
    const bool hint = d.take("L2::cache_hint");
    const Type type = d.take_type();
    d.finish_modifiers();
    d.expect_operands(hint ? 3 : 2);
    set_bytes(d, type, count);
    if (hint) d.source(2, Type::b64);

    Registers registers;
    d.result.needed = 0;
    const unsigned element_bytes = bits_of(type) / 8;
    for (const auto* element : elements_of(d, 0, count)) {
        if (is_read(d, *element)) {
            const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << element_bytes) - 1);
            d.result.needed |= mask << (registers.slots.size() * std::min(element_bytes, 8U));
        }
        add_register(d, registers, d.wide_destination(*element, type));
    }
    d.address(1, space, 1);
    if (ordered) d.result.flags |= kOrdered;
    d.result.list = d.builder().keep(registers.slots);
    d.result.execute = d.required(
        type == Type::b128 ? &execute_load<std::uint64_t, std::uint64_t> : choose_load(type, registers.bits), type);
}

void decode_store(Decoder& d) {
    bool ordered = false;
    const std::size_t count = take_common(d, ordered);
    const auto space = d.take_space();
    const bool hint = d.take("L2::cache_hint");
    const Type type = d.take_type();
    d.finish_modifiers();
    d.expect_operands(hint ? 3 : 2);
    set_bytes(d, type, count);
    if (hint) d.source(2, Type::b64);
    if (space == ptx::Space::constant) d.refuse("constant memory can only be read");

    Registers registers;
    for (const auto* element : elements_of(d, 1, count)) {
        Decoder::WideSlot wide = d.wide_source(*element, type);
        // An immediate beside registers that are wider than the type takes their width.
        if (registers.bits != 0 && element->kind != ptx::Operand::Kind::register_ && registers.bits > wide.bits) {
            d.refuse("the vector mixes registers of different widths");
        }
        add_register(d, registers, wide);
    }
    d.address(0, space, 1);
    if (ordered) d.result.flags |= kOrdered;
    d.result.list = d.builder().keep(registers.slots);
    d.result.execute = d.required(
        type == Type::b128 ? &execute_store<std::uint64_t, std::uint64_t> : choose_store(type, registers.bits), type);
}

Outcome execute_nothing(Warp&, const Decoded&) { return Outcome::next; }

/// Prefetches and cache management change no data.
void decode_prefetch(Decoder& d) {
    d.take_space();
    ignore_cache_hints(d);
    d.ignore({"L1", "L2", "tensormap"});
    d.finish_modifiers();
    d.expect_operands(1, 2);
    d.result.execute = &execute_nothing;
}

/// createpolicy: a cache policy has no effect, so that any value will do.
Outcome execute_zero(Warp& warp, const Decoded& i) {
    warp.commit(i.slots[0], std::array<std::uint64_t, kWarpSize>{});
    return Outcome::next;
}

void decode_create_policy(Decoder& d) {
    d.ignore({"fractional", "range", "cvt", "L2", "global"});
    ignore_cache_hints(d);
    if (d.take_type() != Type::b64) d.refuse("a cache policy is of type .b64");
    d.finish_modifiers();
    d.expect_operands(1, 4);
    d.result.slots[0] = d.destination(0, Type::b64);
    d.result.execute = &execute_zero;
}

constexpr std::array kOpcodes{
    Opcode{"ld", decode_load},
    Opcode{"st", decode_store},
    Opcode{"prefetch", decode_prefetch},
    Opcode{"prefetchu", decode_prefetch},
    Opcode{"applypriority", decode_prefetch},
    Opcode{"createpolicy", decode_create_policy},
};

}  // namespace

std::array<std::uint64_t, kWarpSize> lane_addresses(Warp& warp, const Decoded& i, Slot base) {
    warp.require(i, base);
    alignas(64) std::array<std::uint64_t, kWarpSize> addresses;
    if ((i.flags & kWideAddress) != 0) {
        const auto* from = warp.lanes_of<std::uint64_t>(base);
        for (unsigned lane = 0; lane < kWarpSize; ++lane) addresses[lane] = from[lane] + i.immediate;
        if (!i.generic && i.space != ptx::Space::global && i.space != ptx::Space::constant) {
            for (auto& address : addresses) address &= std::numeric_limits<std::uint32_t>::max();
        }
    } else {
        const auto* from = warp.lanes_of<std::uint32_t>(base);
        const auto offset = static_cast<std::uint32_t>(i.immediate);
        for (unsigned lane = 0; lane < kWarpSize; ++lane)
            addresses[lane] = static_cast<std::uint32_t>(from[lane] + offset);
    }
    if (warp.active() != kAllLanes) {
        const std::uint64_t first = addresses[warp.first_lane()];
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            addresses[lane] = (warp.active() >> lane & 1) != 0 ? addresses[lane] : first;
        }
    }
    return addresses;
}

void ignore_scope(Decoder& d) { d.ignore({"cta", "cluster", "gpu", "sys"}); }

void ignore_cache_hints(Decoder& d) {
    d.ignore({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified"});
    d.ignore({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
    d.ignore({"L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::evict_unchanged"});
    d.ignore({"L2::64B", "L2::128B", "L2::256B"});
}

std::span<const Opcode> memory_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
