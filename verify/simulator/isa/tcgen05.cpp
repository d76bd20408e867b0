/// tcgen05 (PTX ISA 9.7.16): allocation of Tensor Memory, fences and commits. What sm_100a has beyond dense products of
/// 16-bit types in one CTA is refused by name.
#include "verify/simulator/isa/tcgen05.h"

#include <array>
#include <bit>
#include <vector>

#include "verify/simulator/engines/tcgen05.h"
#include "verify/simulator/isa/async_operands.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/shared_place.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kLeastColumns = 32;

constexpr bool is_column_count(std::uint64_t columns) {
    return std::has_single_bit(columns) && columns >= kLeastColumns && columns <= kTensorMemoryColumns;
}

/// The number of columns that the warp gives, or nothing.
std::optional<std::uint32_t> take_columns(Warp& warp, const Decoded& i, Slot slot) {
    warp.require(i, slot);
    const std::uint32_t columns = uniform_operand(warp, i, warp.lanes_of<std::uint32_t>(slot), "the number of columns");
    if (is_column_count(columns)) return columns;
    warp.report(Rule::tensor_memory, i, warp.active(), [&] {
        return fmt::format("the number of columns is {}; it must be 32, 64, 128, 256 or 512", columns);
    });
    return std::nullopt;
}

/// slots: 1 where the address is stored, 2 the number of columns.
Outcome execute_allocate(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (!whole_warp(warp, i)) return Outcome::next;
    const unsigned lane = warp.first_lane();
    const auto columns = take_columns(warp, i, i.slots[2]);
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    const std::uint64_t address = uniform_operand(warp, i, addresses.data(), "the address to store to");
    const auto place = find_shared(warp, i, lane, address, {"the word for the address", 4, 4, i.generic, false});
    if (!columns || !place) return Outcome::next;
    TensorMemory& memory = warp.cta().tcgen05().memory();
    if (memory.relinquished()) {
        warp.report(Rule::tensor_memory, i, warp.active(), [] {
            return "the CTA allocates Tensor Memory after one of its threads has given up the right to it with "
                   "tcgen05.relinquish_alloc_permit";
        });
    }
    const auto first = memory.allocate({&warp, &i, lane}, *columns);
    if (!first) return warp.park(i, Wait::tensor_memory, *columns);
    const std::uint32_t allocated = encode_tensor_memory_address({0, *first});
    std::memcpy(place->data(), &allocated, sizeof allocated);
    std::fill_n(place->shadow(), sizeof allocated, std::byte{1});
    return Outcome::next;
}

/// slots: 0 the address, 1 the number of columns.
Outcome execute_free(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (!whole_warp(warp, i)) return Outcome::next;
    warp.require(i, i.slots[0]);
    const std::uint32_t address =
        uniform_operand(warp, i, warp.lanes_of<std::uint32_t>(i.slots[0]), "the address in Tensor Memory");
    const auto columns = take_columns(warp, i, i.slots[1]);
    if (!columns) return Outcome::next;
    warp.cta().tcgen05().free({&warp, &i, warp.first_lane()}, address, *columns);
    warp.cta().wake(Wait::tensor_memory);
    return Outcome::next;
}

Outcome execute_relinquish(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (whole_warp(warp, i)) warp.cta().tcgen05().memory().relinquish();
    return Outcome::next;
}

constexpr std::uint8_t kMulticast = 2;

/// slots: 1 the address of the mbarrier object, 2 the multicast mask.
Outcome execute_commit(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    warp.require(i, i.slots[2]);
    const auto* masks = warp.lanes_of<std::uint32_t>(i.slots[2]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto place = find_shared(warp, i, lane, addresses[lane], {"the mbarrier object", 8, 8, i.generic, true});
        if (!place) continue;
        std::vector<SharedPlace> barriers;
        if ((i.flags & kMulticast) != 0) {
            for (Cta* target : multicast_targets(warp, i, lane, masks[lane])) {
                barriers.push_back({target, place->offset});
            }
        } else {
            barriers.push_back(*place);
        }
        warp.cta().tcgen05().commit({&warp, &i, lane}, std::move(barriers));
    }
    return Outcome::next;
}

Outcome execute_fence(Warp&, const Decoded&) { return Outcome::next; }

void check_columns(Decoder& d, std::size_t i) {
    const ptx::Operand& columns = d.operand(i);
    if (columns.kind == ptx::Operand::Kind::integer && !is_column_count(static_cast<std::uint64_t>(columns.integer))) {
        d.refuse_operand(columns, "the number of columns is 32, 64, 128, 256 or 512");
    }
}

void decode_allocate(Decoder& d) {
    take_cta_group(d);
    take_aligned(d);
    const auto space = d.take_space();
    if ((space && *space != ptx::Space::shared) || d.result.cluster) d.refuse("the address is stored in .shared::cta");
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(2);
    d.address(0, space, 1);
    check_columns(d, 1);
    d.result.slots[2] = d.source(1, Type::b32);
    d.result.execute = &execute_allocate;
}

void decode_free(Decoder& d) {
    take_cta_group(d);
    take_aligned(d);
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.source(0, Type::b32);
    check_columns(d, 1);
    d.result.slots[1] = d.source(1, Type::b32);
    d.result.execute = &execute_free;
}

void decode_relinquish(Decoder& d) {
    take_cta_group(d);
    take_aligned(d);
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_relinquish;
}

void decode_commit(Decoder& d) {
    take_cta_group(d);
    if (!d.take("mbarrier::arrive::one")) d.refuse("its completion mechanism is .mbarrier::arrive::one");
    const auto space = d.take_space();
    if (space && !d.result.cluster) {
        d.refuse("the mbarrier object is in .shared::cluster, or has a generic address");
    }
    const bool multicast = d.take("multicast::cluster");
    if (d.take_type() != Type::b64) d.refuse("its type is .b64");
    d.finish_modifiers();
    d.expect_operands(multicast ? 2 : 1);
    d.address(0, space, 1);
    d.result.slots[2] = multicast ? d.source(1, Type::b16) : d.builder().constant(0, 16);
    if (multicast) d.result.flags |= kMulticast;
    d.result.execute = &execute_commit;
}

void decode_fence(Decoder& d) {
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_fence;
}

void decode_tcgen05(Decoder& d) {
    d.require_target("sm_100");
    if (d.take("alloc")) return decode_allocate(d);
    if (d.take("dealloc")) return decode_free(d);
    if (d.take("relinquish_alloc_permit")) return decode_relinquish(d);
    if (d.take("mma")) return decode_tcgen05_multiply(d);
    if (d.take("cp")) return decode_tcgen05_copy(d);
    if (d.take("shift")) return decode_tcgen05_shift(d);
    if (d.take("ld")) return decode_tcgen05_load(d);
    if (d.take("st")) return decode_tcgen05_store(d);
    if (d.take("wait::ld")) return decode_tcgen05_wait(d, true);
    if (d.take("wait::st")) return decode_tcgen05_wait(d, false);
    if (d.take("commit")) return decode_commit(d);
    if (d.take("fence::before_thread_sync") || d.take("fence::after_thread_sync")) return decode_fence(d);
    d.refuse("its operation is missing, such as .mma");
}

void decode_cluster_launch_control(Decoder& d) {
    d.refuse("clusterlaunchcontrol is not simulated: the whole grid is launched");
}

constexpr std::array kOpcodes{
    Opcode{"tcgen05", decode_tcgen05},
    Opcode{"clusterlaunchcontrol", decode_cluster_launch_control},
};

}  // namespace

void take_cta_group(Decoder& d) {
    if (d.take("cta_group::2")) d.refuse(".cta_group::2, which joins two CTAs, is not simulated: use .cta_group::1");
    if (!d.take("cta_group::1")) d.refuse(".cta_group::1 is missing");
}

void take_aligned(Decoder& d) {
    if (!d.take("sync") || !d.take("aligned")) d.refuse(".sync.aligned is missing");
}

TensorMemoryOperand tensor_memory_operand(Decoder& d, const ptx::Operand& operand) {
    if (operand.kind != ptx::Operand::Kind::address) {
        d.refuse_operand(operand, "an address in Tensor Memory is needed, a 32-bit register in brackets");
    }
    return {d.source(operand.elements.at(0), Type::b32), static_cast<std::uint32_t>(operand.integer)};
}

bool whole_warp(Warp& warp, const Decoded& instruction) {
    if (warp.active() == kAllLanes) return true;
    warp.report(Rule::tensor_memory, instruction, warp.active(), [&] {
        return fmt::format("only {} of warp {} execute it; a full warp must, none of whose threads has exited",
                           to_string_lanes(warp.active()), warp.index());
    });
    return false;
}

std::span<const Opcode> tcgen05_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
