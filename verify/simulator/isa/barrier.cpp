/// Barriers of a CTA: bar and barrier (PTX ISA 9.7.13.1). A warp arrives as a whole, and counts as 32 threads.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

#include "verify/simulator/isa/cluster.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/machine/cta.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

namespace {

// Decoded::flags.
constexpr std::uint8_t kAligned = 1;
constexpr std::uint8_t kWaits = 2;
constexpr std::uint8_t kReduces = 4;

/// Slots: 0 result, 1 barrier number, 2 thread count (if immediate is not 0), 3 predicate of a reduction.
Outcome execute_barrier(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2], i.slots[3]);
    const unsigned first = warp.first_lane();
    const std::uint32_t number = warp.lanes_of<std::uint32_t>(i.slots[1])[first];
    const std::uint32_t threads = i.immediate == 0 ? 0 : warp.lanes_of<std::uint32_t>(i.slots[2])[first];
    const LaneMask arriving = warp.active();
    if (number >= kBarriers) {
        warp.report(Rule::barrier, i, arriving, [&] {
            return fmt::format("barrier {} does not exist: their numbers are 0 to {}", number, kBarriers - 1);
        });
        return Outcome::next;
    }
    if (i.immediate != 0 && (threads == 0 || threads % kWarpSize != 0)) {
        warp.report(Rule::barrier, i, arriving, [&] {
            return fmt::format("a barrier of {} threads: the count must be a multiple of {} and not 0", threads,
                               kWarpSize);
        });
        return Outcome::next;
    }

    const bool aligned = (i.flags & kAligned) != 0;
    const bool waits = (i.flags & kWaits) != 0;
    warp.detach(i);
    const LaneMask here = warp.meet(i, arriving, warp.alive(), {0, 0, Wait::convergence, number}, !aligned,
                                    waits ? Wait::barrier : Wait::none);
    if (here == 0) return Outcome::reschedule;
    BarrierArrival arrival{number, threads, 0, 0};
    if ((i.flags & kReduces) != 0) {
        arrival.lanes = static_cast<std::uint32_t>(std::popcount(warp.alive()));
        arrival.true_lanes =
            static_cast<std::uint32_t>(std::popcount((warp.predicate(i.slots[3]) ^ i.flip) & warp.alive()));
    }
    if (waits) {
        warp.wait_at_barrier(here, warp.index_of(i), number);
    } else {
        warp.resume(here, warp.index_of(i) + 1);
    }
    if (const auto fault = warp.cta().arrive(arrival)) {
        warp.report(Rule::barrier, i, here, [&] { return *fault; });
    }
    return Outcome::reschedule;
}

void complete_count(Warp& warp, const Decoded& i, const BarrierReduction& reduction) {
    Lanes<std::uint32_t> result;
    result.fill(reduction.count);
    warp.commit(i.slots[0], result);
}

void complete_and(Warp& warp, const Decoded& i, const BarrierReduction& reduction) {
    warp.commit_predicate(i.slots[0], reduction.count == reduction.threads ? kAllLanes : 0);
}

void complete_or(Warp& warp, const Decoded& i, const BarrierReduction& reduction) {
    warp.commit_predicate(i.slots[0], reduction.count > 0 ? kAllLanes : 0);
}

enum class Form : std::uint8_t { sync, arrive, reduce };

/// What is wrong with a number or a count written in the instruction is an error already here, as for ptxas.
void check_immediates(const Decoder& d, std::size_t operand, bool counted) {
    const auto is_immediate = [&](std::size_t i) { return d.operand(i).kind == ptx::Operand::Kind::integer; };
    if (is_immediate(operand) && (d.immediate(operand) < 0 || d.immediate(operand) >= kBarriers)) {
        d.refuse_operand(d.operand(operand), fmt::format("a barrier's number is 0 to {}", kBarriers - 1));
    }
    if (counted && is_immediate(operand + 1) &&
        (d.immediate(operand + 1) <= 0 || d.immediate(operand + 1) % kWarpSize != 0)) {
        d.refuse_operand(d.operand(operand + 1), fmt::format("the number of threads is a multiple of {}", kWarpSize));
    }
}

void decode_barrier(Decoder& d, bool aligned) {
    d.take("cta");
    const auto form = d.take_one<Form>({{"sync", Form::sync}, {"arrive", Form::arrive}, {"red", Form::reduce}});
    if (!form) d.refuse("its form is .sync, .arrive or .red");
    std::size_t operand = 0;
    if (*form == Form::reduce) {
        const auto complete =
            d.take_one<Complete>({{"popc", &complete_count}, {"and", &complete_and}, {"or", &complete_or}});
        if (!complete) d.refuse("the operation is missing: .popc, .and or .or");
        d.result.complete = *complete;
        const Type type = d.take_type();
        if (type != (*complete == &complete_count ? Type::u32 : Type::pred)) {
            d.refuse("the result is .u32 for .popc and .pred for .and and .or");
        }
        d.result.slots[0] = d.destination(operand++, type);
    }
    d.finish_modifiers();
    const std::size_t predicate = *form == Form::reduce ? 1 : 0;
    d.expect_operands(operand + 1 + predicate, operand + 2 + predicate);
    const bool counted = d.operands() == operand + 2 + predicate;
    if (*form == Form::arrive && !counted) d.refuse("an arrival needs the number of threads");
    check_immediates(d, operand, counted);
    d.result.slots[1] = d.source(operand, Type::u32);
    d.result.slots[2] = counted ? d.source(operand + 1, Type::u32) : d.builder().constant(0, 32);
    d.result.slots[3] = d.builder().constant(1, 1);
    if (predicate != 0) {
        const auto source = d.predicate_source(d.operands() - 1);
        d.result.slots[3] = source.slot;
        d.result.flip = source.flip;
    }
    d.result.immediate = counted ? 1 : 0;
    d.result.flags = static_cast<std::uint8_t>((aligned ? kAligned : 0) | (*form == Form::arrive ? 0 : kWaits) |
                                               (*form == Form::reduce ? kReduces : 0));
    d.result.execute = &execute_barrier;
}

/// bar.warp.sync: the lanes of the mask in slots[1] wait for each other, wherever each of them does.
Outcome execute_warp_barrier(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* masks = warp.lanes_of<std::uint32_t>(i.slots[1]);
    LaneMask left = warp.active();
    warp.detach(i);
    while (left != 0) {
        const LaneMask mask = masks[std::countr_zero(left)];
        LaneMask group = 0;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) group |= (LaneMask{masks[lane] == mask} << lane) & left;
        if ((group & ~mask) != 0) {
            warp.report(Rule::membermask, i, group & ~mask, [&] {
                return fmt::format("{} of warp {} executes it, but is not in the member mask {:#010x}",
                                   to_string_lanes(group & ~mask), warp.index(), mask);
            });
        }
        const LaneMask required = (mask | group) & warp.alive();
        const LaneMask here = warp.meet(i, group, required, {0, 0, Wait::warp_barrier, mask}, true, Wait::none);
        if (here != 0) warp.resume(here, warp.index_of(i) + 1);
        left &= ~group;
    }
    return Outcome::reschedule;
}

void decode_warp_barrier(Decoder& d) {
    if (!d.take("sync")) d.refuse("its form is bar.warp.sync");
    d.finish_modifiers();
    d.expect_operands(1);
    d.result.slots[1] = d.source(0, Type::b32);
    d.result.execute = &execute_warp_barrier;
}

void decode_bar(Decoder& d) {
    if (d.take("warp")) {
        decode_warp_barrier(d);
    } else {
        decode_barrier(d, true);
    }
}

void decode_barrier_family(Decoder& d) {
    if (d.take("cluster")) {
        decode_cluster_barrier(d);
    } else {
        decode_barrier(d, d.take("aligned"));
    }
}

constexpr std::array kOpcodes{
    Opcode{"bar", decode_bar},
    Opcode{"barrier", decode_barrier_family},
};

}  // namespace

std::span<const Opcode> barrier_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
