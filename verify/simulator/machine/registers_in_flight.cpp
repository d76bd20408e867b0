#include "verify/simulator/machine/registers_in_flight.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/simulator/machine/finding_log.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

void RegistersInFlight::clear() {
    registers_.clear();
    poisoned_.clear();
}

void RegistersInFlight::forget_copies_to(Slot slot) {
    std::size_t forgotten = 0;
    for (auto& [index, state] : registers_) {
        forgotten += std::erase_if(state.copies, [&](const Copy& copy) { return copy.to.index == slot.index; });
    }
    const auto target = registers_.find(slot.index);
    if (forgotten == 0 || target == registers_.end()) return;
    target->second.pending -= static_cast<unsigned>(forgotten);
    if (target->second.pending == 0) registers_.erase(target);
}

void RegistersInFlight::begin(Slot slot, const Decoded& instruction) {
    LaneMask& written = warp_.written(slot);
    // What an ordinary instruction has written since is a copy no more.
    if (written != 0) forget_copies_to(slot);
    const auto [found, added] = registers_.try_emplace(slot.index);
    State& state = found->second;
    if (added) state.poison = ~written;
    ++state.pending;
    state.lanes = kAllLanes;
    state.instruction = &instruction;
    poisoned_.erase(slot.index);
    written = 0;
}

void RegistersInFlight::deliver(Slot slot, const std::array<std::uint32_t, kWarpSize>& values, LaneMask poison,
                                const std::string& why) {
    std::copy(values.begin(), values.end(), warp_.lanes_of<std::uint32_t>(slot));
    const auto found = registers_.find(slot.index);
    if (found == registers_.end()) return;
    found->second.poison = poison;
    if (poison != 0 && !why.empty()) poisoned_[slot.index] = why;
    for (const Copy& copy : found->second.copies) {
        const LaneMask lanes = copy.lanes & ~warp_.written(copy.to);
        const auto* present = warp_.lanes_of<std::uint32_t>(copy.to);
        auto copied = values;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            if ((lanes >> lane & 1) == 0) copied[lane] = present[lane];
        }
        deliver(copy.to, copied, poison & lanes, why);
    }
}

void RegistersInFlight::end(Slot slot) {
    const auto found = registers_.find(slot.index);
    if (found == registers_.end() || --found->second.pending != 0) return;
    const State state = std::move(found->second);
    registers_.erase(found);
    warp_.written(slot) |= state.lanes & ~state.poison;
    for (const Copy& copy : state.copies) end(copy.to);
}

void RegistersInFlight::moved(Slot from, Slot to, LaneMask lanes) {
    const auto found = registers_.find(from.index);
    if (found == registers_.end() || from.index == to.index) return;
    forget_copies_to(to);
    found->second.copies.push_back({to, lanes});
    const Decoded* instruction = found->second.instruction;
    const LaneMask poison = found->second.poison;
    State& target = registers_[to.index];
    target.instruction = instruction;
    target.lanes |= lanes;
    target.poison = (target.poison & ~lanes) | (poison & lanes);
    ++target.pending;
}

std::string RegistersInFlight::explain(Slot slot) const {
    if (const auto found = poisoned_.find(slot.index); found != poisoned_.end()) return found->second;
    const auto found = registers_.find(slot.index);
    if (found == registers_.end()) return {};
    const Program& program = warp_.program();
    const auto pc = static_cast<std::uint32_t>(found->second.instruction - program.code.data());
    return fmt::format("the instruction of {} that writes it is asynchronous, and no wait has covered it yet",
                       place_text(program, pc));
}

LaneMask RegistersInFlight::poison(Slot slot) const {
    const auto found = registers_.find(slot.index);
    return found == registers_.end() ? 0 : found->second.poison;
}

}  // namespace block_attention::simulator
