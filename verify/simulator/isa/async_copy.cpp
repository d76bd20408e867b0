/// cp.async and its groups (PTX ISA 9.7.9.25.3): copies of 4, 8 or 16 bytes a thread to the CTA's shared memory.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <memory>

#include "verify/simulator/engines/copy.h"
#include "verify/simulator/isa/bulk_copy.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/memory_access.h"
#include "verify/simulator/machine/shared_place.h"

namespace block_attention::simulator {

namespace {

/// Slots: 1 the destination, 2 the source, 3 the bytes to read. `list` is the slot of the ignore-src predicate if there
/// is one. `immediate` is the destination's offset, `target` the source's.
Outcome execute_copy(Warp& warp, const Decoded& i) {
    const auto destinations = lane_addresses(warp, i, i.slots[1]);
    warp.require(i, i.slots[2], i.slots[3]);
    const auto* sources = warp.lanes_of<std::uint64_t>(i.slots[2]);
    const auto* sizes = warp.lanes_of<std::uint32_t>(i.slots[3]);
    LaneMask ignored = 0;
    if (!i.list.empty()) {
        warp.require(i, i.list[0]);
        ignored = warp.predicate(i.list[0]) ^ i.flip;
    }
    Cta& cta = warp.cta();
    CopyToShared copy{
        .issuer = {&warp, &i, warp.first_lane()}, .runs = {}, .targets = {&cta}, .barrier = {}, .groups = {}};
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto destination =
            find_shared(warp, i, lane, destinations[lane], {"the destination of the copy", i.bytes, i.bytes});
        std::uint32_t bytes = (ignored >> lane & 1) != 0 ? 0 : sizes[lane];
        if (bytes > i.bytes) {
            warp.report(Rule::copy, i, LaneMask{1} << lane, [&] {
                return fmt::format("the copy is to read {} bytes, more than its size of {}", bytes, i.bytes);
            });
            bytes = i.bytes;
        }
        const std::uint64_t address = sources[lane] + static_cast<std::int32_t>(i.target);
        const auto source =
            bytes == 0
                ? std::optional<HostBytes>(HostBytes{})
                : find_async(warp, i, lane, {"the source of the copy", ptx::Space::global, address, bytes, i.bytes});
        if (!destination || !source) continue;
        if (bytes > 0) copy.runs.push_back({source->data, source->shadow, destination->offset, bytes});
        if (bytes < i.bytes) copy.runs.push_back({nullptr, nullptr, destination->offset + bytes, i.bytes - bytes});
        copy.groups.push_back(cta.copy_groups(warp, lane).open());
        copy.groups.back()->start();
    }
    if (!copy.runs.empty()) start(std::move(copy));
    return Outcome::next;
}

Outcome execute_commit(Warp& warp, const Decoded&) {
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        warp.cta().copy_groups(warp, static_cast<unsigned>(std::countr_zero(left))).commit();
    }
    return Outcome::next;
}

/// `immediate` groups may be pending; with flag 1 nothing at all.
Outcome execute_wait(Warp& warp, const Decoded& i) {
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const AsyncGroups& groups = warp.cta().copy_groups(warp, static_cast<unsigned>(std::countr_zero(left)));
        if (i.flags != 0 ? !groups.all_done() : !groups.done(i.immediate, false)) return warp.park(i, Wait::engine, 0);
    }
    return Outcome::next;
}

constexpr std::uint8_t kNoIncrement = 2;

/// cp.async.mbarrier.arrive: an arrival when the thread's copies so far are complete; without .noinc it is first added
/// to the phase's pending arrivals (PTX ISA 9.7.13.15.17). Slot 1 is the address.
Outcome execute_arrive(Warp& warp, const Decoded& i) {
    const auto addresses = lane_addresses(warp, i, i.slots[1]);
    Cta& cta = warp.cta();
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto place = find_shared(warp, i, lane, addresses[lane], {"the mbarrier object", 8, 8, i.generic});
        if (!place) continue;
        const Issuer issuer{&warp, &i, lane};
        const auto operate = [issuer, offset = place->offset](MbarrierOperation operation) {
            const MbarrierOutcome outcome = issuer.cta().operate_mbarrier(offset, operation, 1);
            if (!outcome.fault.empty()) {
                issuer.report(Rule::mbarrier, [&] {
                    return fmt::format("on the mbarrier object at {:#x}, it {}", offset, outcome.fault);
                });
            }
            if (outcome.fatal) issuer.cta().stop();
        };
        if ((i.flags & kNoIncrement) == 0) operate(MbarrierOperation::add_pending);
        const auto groups = cta.copy_groups(warp, lane).unfinished();
        const auto pending = std::make_shared<std::size_t>(groups.size());
        const auto arrive_later = [operate, &cta] {
            cta.cluster().post([operate] { operate(MbarrierOperation::arrive); });
        };
        if (groups.empty()) arrive_later();
        for (const auto& group : groups) {
            group->when_complete.emplace_back([pending, arrive_later] {
                if (--*pending == 0) arrive_later();
            });
        }
    }
    return Outcome::next;
}

void decode_arrive(Decoder& d) {
    if (!d.take("arrive")) d.refuse("its form is cp.async.mbarrier.arrive");
    const bool no_increment = d.take("noinc");
    const auto space = d.take_space();
    if (d.result.cluster || (space && *space != ptx::Space::shared)) d.refuse("the object is in .shared::cta");
    if (d.take_type() != Type::b64) d.refuse("its type is .b64");
    d.finish_modifiers();
    d.expect_operands(1);
    d.address(0, space, 1);
    d.result.flags |= no_increment ? kNoIncrement : 0;
    d.result.execute = &execute_arrive;
}

void decode_wait(Decoder& d, bool all) {
    d.finish_modifiers();
    d.expect_operands(all ? 0 : 1);
    const std::int64_t pending = all ? 0 : d.immediate(0);
    if (pending < 0) d.refuse_operand(d.operand(0), "the number of groups that may be pending is 0 or more");
    d.result.immediate = static_cast<std::uint64_t>(pending);
    d.result.flags = all ? 1 : 0;
    d.result.execute = &execute_wait;
}

void decode_copy(Decoder& d) {
    const bool bypass = d.take("cg");
    if (!bypass && !d.take("ca")) d.refuse("its cache operator is .ca or .cg");
    // .shared.global, in this order: the destination, then the source.
    const bool shared = d.take("shared") || d.take("shared::cta");
    if (!shared || !d.take("global")) d.refuse("it copies from .global to .shared");
    const bool hint = d.take("L2::cache_hint");
    ignore_cache_hints(d);
    d.finish_modifiers();
    d.expect_operands(hint ? 4 : 3, hint ? 5 : 4);
    d.address(1, ptx::Space::global, 2);
    const auto offset = static_cast<std::uint32_t>(d.result.immediate);
    d.result.flags = 0;
    d.address(0, ptx::Space::shared, 1);
    d.result.target = offset;
    const std::int64_t bytes = d.immediate(2);
    if (bytes != 16 && (bypass || (bytes != 4 && bytes != 8))) {
        d.refuse_operand(d.operand(2), bypass ? "with .cg the size is 16" : "the size is 4, 8 or 16");
    }
    d.result.bytes = static_cast<std::uint16_t>(bytes);
    d.result.slots[3] = d.builder().constant(d.result.bytes, 32);
    const std::size_t last = d.operands() - (hint ? 1 : 0);
    if (last == 4) {
        const ptx::Operand& extra = d.operand(3);
        const bool predicate =
            extra.kind == ptx::Operand::Kind::register_ &&
            d.builder().function().registers[extra.index].register_class == ptx::RegisterClass::predicate;
        if (predicate) {
            const auto ignore = d.predicate_source(3);
            d.result.list = d.builder().keep(std::array{ignore.slot});
            d.result.flip = ignore.flip;
        } else {
            d.result.slots[3] = d.source(3, Type::u32);
        }
    }
    if (hint) d.source(last, Type::b64);
    d.result.execute = &execute_copy;
}

void decode_async(Decoder& d) {
    if (!d.take("async")) d.refuse("its form is cp.async");
    if (d.take("bulk")) return decode_bulk(d);
    if (d.take("mbarrier")) return decode_arrive(d);
    if (d.take("wait_all")) return decode_wait(d, true);
    if (d.take("wait_group")) return decode_wait(d, false);
    if (d.take("commit_group")) {
        d.finish_modifiers();
        d.expect_operands(0);
        d.result.execute = &execute_commit;
        return;
    }
    decode_copy(d);
}

void decode_reduce(Decoder& d) {
    if (!d.take("reduce") || !d.take("async") || !d.take("bulk")) d.refuse("its form is cp.reduce.async.bulk");
    decode_bulk_reduction(d);
}

void decode_cp(Decoder& d) {
    const auto& modifiers = d.instruction().modifiers;
    if (!modifiers.empty() && modifiers.front() == "reduce") {
        decode_reduce(d);
    } else {
        decode_async(d);
    }
}

constexpr std::array kOpcodes{
    Opcode{"cp", decode_cp},
};

}  // namespace

std::span<const Opcode> async_copy_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
