/// mbarrier objects (PTX ISA 9.7.13.15). Semantics and scopes order memory, which the machine keeps coherent anyway.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/shared_place.h"

namespace block_attention::simulator {

namespace {

/// Of how many waits for a phase that is not complete one returns false at once.
constexpr std::uint32_t kTryWaitPatience = 4;
constexpr std::uint32_t kTestWaitPatience = 2;

/// The objects that the active lanes name, by lane; null where the address is at fault.
std::array<std::optional<SharedPlace>, kWarpSize> find_objects(Warp& warp, const Decoded& i, Slot address) {
    const auto addresses = lane_addresses(warp, i, address);
    std::array<std::optional<SharedPlace>, kWarpSize> places;
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        places[lane] = find_shared(warp, i, lane, addresses[lane],
                                   {"the mbarrier object", 8, 8, i.generic, i.cluster || i.generic});
    }
    return places;
}

void report_fault(Warp& warp, const Decoded& i, unsigned lane, const SharedPlace& place, std::string_view fault) {
    warp.report(Rule::mbarrier, i, LaneMask{1} << lane,
                [&] { return fmt::format("on the mbarrier object at {:#x}, it {}", place.offset, fault); });
}

/// slots: 1 the address, 2 the count.
Outcome execute_init(Warp& warp, const Decoded& i) {
    const auto places = find_objects(warp, i, i.slots[1]);
    warp.require(i, i.slots[2]);
    const auto* counts = warp.lanes_of<std::uint32_t>(i.slots[2]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (!places[lane]) continue;
        const std::string fault = places[lane]->cta->mbarriers().initialise(places[lane]->offset, counts[lane]);
        if (!fault.empty()) report_fault(warp, i, lane, *places[lane], fault);
    }
    return Outcome::next;
}

Outcome execute_invalidate(Warp& warp, const Decoded& i) {
    const auto places = find_objects(warp, i, i.slots[1]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (!places[lane]) continue;
        const std::string fault = places[lane]->cta->mbarriers().invalidate(places[lane]->offset);
        if (!fault.empty()) report_fault(warp, i, lane, *places[lane], fault);
    }
    return Outcome::next;
}

/// Slots: 0 the state before, 1 the address, 2 the operand. `immediate` belongs to the address, `target` is the
/// MbarrierOperation. The lanes take their turns.
Outcome execute_operation(Warp& warp, const Decoded& i) {
    const auto places = find_objects(warp, i, i.slots[1]);
    warp.require(i, i.slots[2]);
    const auto* operands = warp.lanes_of<std::uint32_t>(i.slots[2]);
    Lanes<std::uint64_t> states{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (!places[lane]) continue;
        const auto operation = static_cast<MbarrierOperation>(i.target);
        const MbarrierOutcome outcome =
            places[lane]->cta->operate_mbarrier(places[lane]->offset, operation, operands[lane]);
        states[lane] = outcome.state;
        if (!outcome.fault.empty()) report_fault(warp, i, lane, *places[lane], outcome.fault);
        if (outcome.fatal) warp.cta().stop();
    }
    warp.commit(i.slots[0], states);
    return Outcome::next;
}

constexpr std::uint8_t kParity = 2;
constexpr std::uint8_t kMaySuspend = 4;

/// Slots: 0 the answer, 1 the address, 2 the state or the parity.
///
/// A wait for a phase that is not complete sometimes answers false at once, and otherwise lets the warp wait until the
/// phase is complete or nothing else can go on: a loop around it costs nothing then. The ISA lets try_wait suspend the
/// thread, and a test_wait may be late like every instruction.
Outcome execute_wait(Warp& warp, const Decoded& i) {
    const auto places = find_objects(warp, i, i.slots[1]);
    warp.require(i, i.slots[2]);
    const bool timed_out = warp.take_time_out();
    LaneMask answer = 0;
    std::optional<std::uint32_t> waited_for;
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        bool complete = true;  // where something is wrong, the kernel goes on
        if (places[lane]) {
            std::string fault;
            const auto object = places[lane]->cta->mbarriers().find(places[lane]->offset, fault);
            if (!object) {
                report_fault(warp, i, lane, *places[lane], fault);
            } else if ((i.flags & kParity) != 0) {
                complete = object->test_parity(warp.lanes_of<std::uint32_t>(i.slots[2])[lane]);
            } else {
                const std::uint64_t state = warp.lanes_of<std::uint64_t>(i.slots[2])[lane];
                complete = object->test_state(state);
                if (object->is_stale(state)) {
                    report_fault(warp, i, lane, *places[lane],
                                 "waits with the state of a phase that is neither the current nor the preceding one");
                }
            }
        }
        if (complete) {
            answer |= LaneMask{1} << lane;
        } else {
            waited_for = places[lane]->offset;
        }
    }
    if (waited_for && !timed_out) {
        const std::uint32_t patience = (i.flags & kMaySuspend) != 0 ? kTryWaitPatience : kTestWaitPatience;
        if (warp.cta().random().below(patience) != 0) return warp.park(i, Wait::mbarrier, *waited_for);
    }
    warp.commit_predicate(i.slots[0], answer);
    return Outcome::next;
}

/// slots[0] = the arrivals that were pending in state slots[1].
Outcome execute_pending_count(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* states = warp.lanes_of<std::uint64_t>(i.slots[1]);
    Lanes<std::uint32_t> result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) result[lane] = Mbarrier::pending_count(states[lane]);
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

/// Takes .sem and .scope, which come together (PTX ISA 9.7.13.15.13).
void take_semantics(Decoder& d, std::initializer_list<std::pair<std::string_view, int>> semantics) {
    const bool semantic = d.take_one<int>(semantics).has_value();
    const bool scope = d.take_one<int>({{"cta", 0}, {"cluster", 1}}).has_value();
    if (semantic != scope) d.refuse("its semantics, such as .release, and its scope, .cta or .cluster, come together");
}

void finish(Decoder& d) {
    if (d.take_type() != Type::b64) d.refuse("its type is .b64");
    d.finish_modifiers();
}

/// Takes the state space: .shared, .shared::cta or nothing, and .shared::cluster where another CTA is in reach.
std::optional<ptx::Space> take_shared_space(Decoder& d, bool cluster) {
    const auto space = d.take_space();
    if (space && *space != ptx::Space::shared) d.refuse("the object is in .shared memory");
    if (d.result.cluster && !cluster) d.refuse("it works on the CTA's own objects: .shared::cta");
    return space;
}

void decode_init(Decoder& d) {
    const auto space = take_shared_space(d, false);
    finish(d);
    d.expect_operands(2);
    d.address(0, space, 1);
    d.result.slots[2] = d.source(1, Type::u32);
    d.result.execute = &execute_init;
}

void decode_invalidate(Decoder& d) {
    const auto space = take_shared_space(d, false);
    finish(d);
    d.expect_operands(1);
    d.address(0, space, 1);
    d.result.execute = &execute_invalidate;
}

/// expect_tx and complete_tx.
void decode_transaction(Decoder& d, MbarrierOperation operation) {
    take_semantics(d, {{"relaxed", 0}});
    const auto space = take_shared_space(d, true);
    finish(d);
    d.expect_operands(2);
    d.result.slots[0] = d.builder().scratch(64);
    d.address(0, space, 1);
    d.result.slots[2] = d.source(1, Type::u32);
    d.result.target = static_cast<std::uint32_t>(operation);
    d.result.execute = &execute_operation;
}

void decode_arrive(Decoder& d, bool drop) {
    const bool expect = d.take("expect_tx");
    const bool no_complete = d.take("noComplete");
    if (expect && no_complete) d.refuse(".expect_tx and .noComplete exclude each other");
    take_semantics(d, {{"release", 0}, {"relaxed", 1}});
    const auto space = take_shared_space(d, true);
    finish(d);
    const bool counted = expect || no_complete;
    d.expect_operands(counted ? 3 : 2, 3);
    if (d.result.cluster && d.operand(0).kind != ptx::Operand::Kind::sink) {
        d.refuse("an arrival at .shared::cluster has no result: its destination is _");
    }
    d.result.slots[0] = d.destination(0, Type::b64);
    d.address(1, space, 1);
    d.result.slots[2] = d.operands() == 3 ? d.source(2, Type::u32) : d.builder().constant(1, 32);
    const auto operation =
        expect        ? (drop ? MbarrierOperation::arrive_drop_expect_tx : MbarrierOperation::arrive_expect_tx)
        : no_complete ? (drop ? MbarrierOperation::arrive_drop_no_complete : MbarrierOperation::arrive_no_complete)
                      : (drop ? MbarrierOperation::arrive_drop : MbarrierOperation::arrive);
    d.result.target = static_cast<std::uint32_t>(operation);
    d.result.execute = &execute_operation;
}

void decode_wait(Decoder& d, bool may_suspend) {
    const bool parity = d.take("parity");
    take_semantics(d, {{"acquire", 0}, {"relaxed", 1}});
    const auto space = take_shared_space(d, false);
    finish(d);
    d.expect_operands(3, may_suspend ? 4 : 3);
    d.result.slots[0] = d.destination(0, Type::pred);
    d.address(1, space, 1);
    if (parity && d.operand(2).kind == ptx::Operand::Kind::integer && (d.immediate(2) & ~std::int64_t{1}) != 0) {
        d.refuse_operand(d.operand(2), "a phase's parity is 0 or 1");
    }
    d.result.slots[2] = parity ? d.source(2, Type::u32) : d.source(2, Type::b64);
    if (d.operands() == 4) d.source(3, Type::u32);  // how long it may suspend, in ns
    d.result.flags |= static_cast<std::uint8_t>((parity ? kParity : 0) | (may_suspend ? kMaySuspend : 0));
    d.result.execute = &execute_wait;
}

void decode_pending_count(Decoder& d) {
    finish(d);
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::u32);
    d.result.slots[1] = d.source(1, Type::b64);
    d.result.execute = &execute_pending_count;
}

void decode_mbarrier(Decoder& d) {
    if (d.take("init")) return decode_init(d);
    if (d.take("inval")) return decode_invalidate(d);
    if (d.take("arrive")) return decode_arrive(d, false);
    if (d.take("arrive_drop")) return decode_arrive(d, true);
    if (d.take("test_wait")) return decode_wait(d, false);
    if (d.take("try_wait")) return decode_wait(d, true);
    if (d.take("pending_count")) return decode_pending_count(d);
    if (d.take("expect_tx")) return decode_transaction(d, MbarrierOperation::expect_tx);
    if (d.take("complete_tx")) return decode_transaction(d, MbarrierOperation::complete_tx);
    d.refuse("its operation is missing, such as .arrive");
}

constexpr std::array kOpcodes{
    Opcode{"mbarrier", decode_mbarrier},
};

}  // namespace

std::span<const Opcode> mbarrier_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
