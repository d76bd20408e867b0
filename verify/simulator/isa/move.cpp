/// Moves (PTX ISA 9.7.9: mov, cvta, isspacep).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/registers_in_flight.h"
#include "verify/simulator/machine/special_registers.h"

namespace block_attention::simulator {

namespace {

/// A copy of something that was never written is no fault yet, only its use is: compilers copy undefined values.
void copy_written(Warp& warp, Slot to, LaneMask written) {
    LaneMask& mask = warp.written(to);
    mask = (mask & ~warp.active()) | (written & warp.active());
}

/// The same where all of a register is copied, which may also be one that an asynchronous operation will write.
void copy_register_state(Warp& warp, Slot from, Slot to, LaneMask written) {
    copy_written(warp, to, written);
    const LaneMask missing = warp.active() & ~written;
    if (missing != 0 && !warp.in_flight().empty()) warp.in_flight().moved(from, to, missing);
}

template <typename Cell, unsigned cells>
Outcome execute_move(Warp& warp, const Decoded& i) {
    const auto* from = warp.lanes_of<Cell>(i.slots[1]);
    const LaneMask written = warp.written(i.slots[1]);
    for (unsigned part = 0; part < cells; ++part) {
        alignas(64) std::array<Cell, kWarpSize> result;
        std::copy_n(from + part * kWarpSize, kWarpSize, result.begin());
        warp.commit({i.slots[0].offset + part * static_cast<unsigned>(sizeof result), i.slots[0].index}, result);
    }
    copy_register_state(warp, i.slots[1], i.slots[0], written);
    return Outcome::next;
}

Outcome execute_move_predicate(Warp& warp, const Decoded& i) {
    const LaneMask written = warp.written(i.slots[1]);
    warp.commit_predicate(i.slots[0], warp.predicate(i.slots[1]));
    copy_written(warp, i.slots[0], written);
    return Outcome::next;
}

/// The 64-bit half `half` of every lane of a register of `bits` bits.
std::uint64_t read_half(const Warp& warp, Slot slot, unsigned bits, unsigned half, unsigned lane) {
    return bits <= 32 ? warp.lanes_of<std::uint32_t>(slot)[lane]
                      : warp.lanes_of<std::uint64_t>(slot)[half * kWarpSize + lane];
}

void write_half(Warp& warp, Slot slot, unsigned bits, unsigned half,
                const std::array<std::uint64_t, kWarpSize>& value) {
    if (bits > 32) {
        const auto offset = static_cast<std::uint32_t>(half * sizeof value);
        warp.commit<std::uint64_t>({slot.offset + offset, slot.index}, value);
        return;
    }
    alignas(64) std::array<std::uint32_t, kWarpSize> narrow;
    std::ranges::transform(value, narrow.begin(), [](std::uint64_t x) { return static_cast<std::uint32_t>(x); });
    warp.commit(slot, narrow);
}

/// slots[0], a register of `bytes` bytes, gets the elements of the list side by side, the first one lowest.
Outcome execute_pack(Warp& warp, const Decoded& i) {
    const unsigned bits = 8U * i.bytes;
    const auto element_bits = static_cast<unsigned>(bits / i.list.size());
    LaneMask written = kAllLanes;
    for (const Slot element : i.list) written &= warp.written(element);
    std::array<std::array<std::uint64_t, kWarpSize>, 2> halves{};
    for (std::size_t e = 0; e < i.list.size(); ++e) {
        const auto at = static_cast<unsigned>(e) * element_bits;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            halves[at / 64][lane] |= read_half(warp, i.list[e], element_bits, 0, lane) << at % 64;
        }
    }
    for (unsigned half = 0; half < (bits + 63) / 64; ++half) write_half(warp, i.slots[0], bits, half, halves[half]);
    copy_written(warp, i.slots[0], written);
    return Outcome::next;
}

/// The elements of the list get the parts of slots[0].
Outcome execute_unpack(Warp& warp, const Decoded& i) {
    const unsigned bits = 8U * i.bytes;
    const auto element_bits = static_cast<unsigned>(bits / i.list.size());
    const std::uint64_t mask = element_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << element_bits) - 1;
    const LaneMask written = warp.written(i.slots[0]);
    std::array<std::array<std::uint64_t, kWarpSize>, 2> halves{};
    for (unsigned half = 0; half < (bits + 63) / 64; ++half) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            halves[half][lane] = read_half(warp, i.slots[0], bits, half, lane);
        }
    }
    for (std::size_t e = 0; e < i.list.size(); ++e) {
        const auto at = static_cast<unsigned>(e) * element_bits;
        std::array<std::uint64_t, kWarpSize> element;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) element[lane] = halves[at / 64][lane] >> at % 64 & mask;
        write_half(warp, i.list[e], element_bits, 0, element);
        copy_written(warp, i.list[e], written);
    }
    return Outcome::next;
}

Type element_type(Decoder& d, unsigned bits, std::size_t elements) {
    switch (bits / elements) {
        case 8:
            return Type::b8;
        case 16:
            return Type::b16;
        case 32:
            return Type::b32;
        case 64:
            return Type::b64;
        default:
            d.refuse("a vector of 2 or 4 elements of at least 8 bits is needed");
    }
}

void decode_vector_move(Decoder& d, Type type, bool pack) {
    const ptx::Operand& vector = d.operand(pack ? 1 : 0);
    const std::size_t elements = vector.elements.size();
    if (elements != 2 && elements != 4) d.refuse_operand(vector, "a vector of 2 or 4 elements is needed");
    const Type part = element_type(d, bits_of(type), elements);
    std::vector<Slot> slots;
    for (const auto& element : vector.elements) {
        slots.push_back(pack ? d.source(element, part) : d.destination(element, part));
    }
    d.result.list = d.builder().keep(slots);
    d.result.slots[0] = pack ? d.destination(0, type) : d.source(1, type);
    d.result.bytes = static_cast<std::uint16_t>(bits_of(type) / 8);
    d.result.execute = pack ? &execute_pack : &execute_unpack;
}

/// A clock advances with the CTA's instructions; a high half is always 0.
Outcome execute_read_clock(Warp& warp, const Decoded& i) {
    const std::uint64_t now = i.immediate != 0 ? 0 : warp.cta().clock();
    std::array<std::uint64_t, kWarpSize> value;
    value.fill(i.bytes == 4 ? now & 0xFFFFFFFF : now);
    write_half(warp, i.slots[0], 8U * i.bytes, 0, value);
    return Outcome::next;
}

void decode_move(Decoder& d) {
    using Kind = ptx::Operand::Kind;
    const Type type = d.take_type();
    const unsigned bits = bits_of(type);
    d.finish_modifiers();
    d.expect_operands(2);
    if (d.operand(0).kind == Kind::vector) return decode_vector_move(d, type, false);
    if (d.operand(1).kind == Kind::vector) return decode_vector_move(d, type, true);

    d.result.slots[0] = d.destination(0, type);
    d.result.bytes = static_cast<std::uint16_t>(bits / 8);
    const ptx::Operand& from = d.operand(1);
    if (from.kind == Kind::special_register && special_kind(from.name) == SpecialKind::clock) {
        if (bits != 32 && bits != 64) d.refuse("a clock has 32 or 64 bits");
        d.result.immediate = from.name.ends_with("_hi") ? 1 : 0;
        d.result.execute = &execute_read_clock;
        return;
    }
    if (from.kind == Kind::variable) {
        if (bits != 32 && bits != 64) d.refuse("an address has 32 or 64 bits");
        const auto place = d.builder().place_of(from);
        if (bits == 32 && place.space == ptx::Space::global) d.refuse("an address in global memory has 64 bits");
        d.result.slots[1] = d.variable_address(place, from.integer, bits);
    } else {
        d.result.slots[1] = d.source(1, type);
    }
    if (type == Type::pred) {
        d.result.execute = &execute_move_predicate;
    } else {
        d.result.execute = bits <= 32   ? &execute_move<std::uint32_t, 1>
                           : bits == 64 ? &execute_move<std::uint64_t, 1>
                                        : &execute_move<std::uint64_t, 2>;
    }
}

/// slots[0] = slots[1] + immediate.
Outcome execute_offset(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* from = warp.lanes_of<std::uint64_t>(i.slots[1]);
    alignas(64) std::array<std::uint64_t, kWarpSize> result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = from[lane] + i.immediate;
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

/// The generic address of address 0 of a state space.
std::uint64_t window_of(ptx::Space space) {
    switch (space) {
        case ptx::Space::shared:
            return kSharedWindow;
        case ptx::Space::local:
            return kLocalWindow;
        case ptx::Space::param:
            return kParameterWindow;
        case ptx::Space::global:
        case ptx::Space::constant:
            return 0;
    }
    return 0;
}

void decode_convert_address(Decoder& d) {
    const bool from_generic = d.take("to");
    const auto space = d.take_space();
    if (!space) d.refuse("the state space is missing, such as .global");
    const Type type = d.take_type();
    if (type != Type::u64) d.refuse("generic addresses have 64 bits: its type is .u64");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, type);
    const ptx::Operand& from = d.operand(1);
    if (from.kind == ptx::Operand::Kind::variable) {
        const auto place = d.builder().place_of(from);
        if (place.space != *space) d.refuse_operand(from, "the variable is in another state space");
        d.result.slots[1] = d.variable_address(place, from.integer, 64);
    } else {
        d.result.slots[1] = d.source(1, type);
    }
    d.result.immediate = from_generic ? std::uint64_t{0} - window_of(*space) : window_of(*space);
    d.result.execute = &execute_offset;
}

/// Whether an address is that of a constant, which this machine keeps in global memory and H200 does not (measured).
bool is_constant(const Warp& warp, std::uint64_t address) {
    const Allocation* allocation = warp.cta().grid().memory->find(address);
    return allocation != nullptr && allocation->read_only && address - allocation->address < allocation->bytes;
}

/// slots[0] = whether the generic address slots[1] lies in the window at `immediate`. Global memory is all that is
/// neither shared nor local nor constant: parameters are there too (measured on H200). .shared is the CTA's own part of
/// the window of shared memory, .shared::cluster all of it.
Outcome execute_is_space(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* from = warp.lanes_of<std::uint64_t>(i.slots[1]);
    LaneMask result = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const std::uint64_t window = from[lane] & ~(kWindowBytes - 1);
        const bool global = window != kSharedWindow && window != kLocalWindow && !is_constant(warp, from[lane]);
        bool is = i.immediate == 0 ? global : window == i.immediate;
        if (window == kSharedWindow && !i.cluster) {
            is = is && (from[lane] & (kWindowBytes - 1)) >> kSharedRankShift == warp.cta().rank();
        }
        result |= LaneMask{is} << lane;
    }
    warp.commit_predicate(i.slots[0], result);
    return Outcome::next;
}

void decode_is_space(Decoder& d) {
    const auto space = d.take_space();
    if (!space || *space == ptx::Space::constant) d.refuse("its state space is .global, .shared, .local or .param");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::pred);
    d.result.slots[1] = d.source(1, Type::u64);
    d.result.immediate = window_of(*space);
    d.result.execute = &execute_is_space;
}

/// mapa: slots[0] = the address slots[1] of shared memory, in the CTA of rank slots[2] of the cluster.
template <typename Cell>
Outcome execute_map_address(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2]);
    const Cell* from = warp.lanes_of<Cell>(i.slots[1]);
    const auto* ranks = warp.lanes_of<std::uint32_t>(i.slots[2]);
    alignas(64) std::array<Cell, kWarpSize> result;
    constexpr Cell kRankBits = Cell{0xFF} << kSharedRankShift;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        result[lane] = (from[lane] & ~kRankBits) | static_cast<Cell>(ranks[lane]) << kSharedRankShift;
    }
    const unsigned size = warp.cta().cluster().size();
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        if (ranks[lane] < size) continue;
        warp.report(Rule::cluster, i, LaneMask{1} << lane, [&] {
            return fmt::format("the cluster has {} CTAs, so that rank {} does not exist", size, ranks[lane]);
        });
    }
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

/// Address operand `i` of mapa and getctarank: a register, or a shared variable.
Slot take_shared_address(Decoder& d, std::size_t i, Type type) {
    const ptx::Operand& from = d.operand(i);
    if (from.kind != ptx::Operand::Kind::variable) return d.source(i, type);
    const auto place = d.builder().place_of(from);
    if (place.space != ptx::Space::shared) d.refuse_operand(from, "the variable is not in shared memory");
    return d.variable_address(place, from.integer, bits_of(type));
}

void decode_map_address(Decoder& d) {
    d.take("shared::cluster");
    const Type type = d.take_type();
    if (type != Type::u32 && type != Type::u64) d.refuse("its type is .u32 or .u64");
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = take_shared_address(d, 1, type);
    d.result.slots[2] = d.source(2, Type::u32);
    d.result.execute = type == Type::u32 ? &execute_map_address<std::uint32_t> : &execute_map_address<std::uint64_t>;
}

/// getctarank: slots[0] = the rank of the CTA whose shared memory the address slots[1] is in.
template <typename Cell>
Outcome execute_rank_of_address(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const Cell* from = warp.lanes_of<Cell>(i.slots[1]);
    alignas(64) std::array<std::uint32_t, kWarpSize> result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        result[lane] = static_cast<std::uint32_t>(from[lane]) >> kSharedRankShift;
    }
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

void decode_rank_of_address(Decoder& d) {
    d.take("shared::cluster");
    const Type type = d.take_type();
    if (type != Type::u32 && type != Type::u64) d.refuse("its type is .u32 or .u64");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::u32);
    d.result.slots[1] = take_shared_address(d, 1, type);
    d.result.execute =
        type == Type::u32 ? &execute_rank_of_address<std::uint32_t> : &execute_rank_of_address<std::uint64_t>;
}

constexpr std::array kOpcodes{
    Opcode{"mov", decode_move},
    Opcode{"mapa", decode_map_address},
    Opcode{"getctarank", decode_rank_of_address},
    Opcode{"cvta", decode_convert_address},
    Opcode{"isspacep", decode_is_space},
};

}  // namespace

std::span<const Opcode> move_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
