#include "verify/simulator/machine/mbarrier_table.h"

#include <fmt/format.h>

#include <cstring>

namespace block_attention::simulator {

std::uint64_t MbarrierTable::load(std::uint32_t offset) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, shared_ + (offset - base_), sizeof bits);
    return bits;
}

void MbarrierTable::store(std::uint32_t offset, std::uint64_t bits) {
    std::memcpy(shared_ + (offset - base_), &bits, sizeof bits);
    std::memset(shadow_ + (offset - base_), 1, sizeof bits);
    live_[offset] = bits;
}

std::string MbarrierTable::initialise(std::uint32_t offset, std::uint32_t count) {
    std::string fault;
    if (live_.contains(offset)) {
        fault = "initialises an mbarrier object that is in use: mbarrier.inval comes first (PTX ISA 9.7.13.15.9)";
    } else if (const MbarrierFault found = Mbarrier::check_init(count); found != MbarrierFault::none) {
        fault = simulator::describe(found);
    }
    store(offset, Mbarrier::initialised(count).bits());
    return fault;
}

std::string MbarrierTable::invalidate(std::uint32_t offset) {
    std::string fault;
    if (find(offset, fault)) live_.erase(offset);
    return fault;
}

std::optional<Mbarrier> MbarrierTable::find(std::uint32_t offset, std::string& fault) const {
    const auto found = live_.find(offset);
    if (found == live_.end()) {
        fault = "finds no mbarrier object there: none was initialised, or it was invalidated";
        return std::nullopt;
    }
    if (load(offset) != found->second) {
        fault = "finds that something else was written over the mbarrier object";
        return std::nullopt;
    }
    return Mbarrier(found->second);
}

MbarrierOutcome MbarrierTable::operate(std::uint32_t offset, MbarrierOperation operation, std::uint32_t operand) {
    MbarrierOutcome outcome;
    auto object = find(offset, outcome.fault);
    if (!object) return outcome;
    outcome.state = object->bits();
    const std::uint32_t phase = object->phase();
    const auto apply = [&] {
        switch (operation) {
            case MbarrierOperation::expect_tx:
                return object->expect_tx(operand);
            case MbarrierOperation::complete_tx:
                return object->complete_tx(operand);
            case MbarrierOperation::arrive:
                return object->arrive(operand);
            case MbarrierOperation::arrive_no_complete:
                return object->arrive_no_complete(operand);
            case MbarrierOperation::arrive_expect_tx:
                return object->arrive_expect_tx(operand);
            case MbarrierOperation::arrive_drop:
                return object->arrive_drop(operand);
            case MbarrierOperation::arrive_drop_no_complete:
                return object->arrive_drop_no_complete(operand);
            case MbarrierOperation::arrive_drop_expect_tx:
                return object->arrive_drop_expect_tx(operand);
            case MbarrierOperation::add_pending:
                return object->add_pending();
        }
        return MbarrierFault::none;
    };
    const MbarrierFault fault = apply();
    if (fault != MbarrierFault::none) {
        outcome.fatal = is_fatal(fault);
        outcome.fault = fmt::format("{} ({})", simulator::describe(fault), describe(offset));
    }
    outcome.completed = object->phase() != phase;
    store(offset, object->bits());
    return outcome;
}

std::string MbarrierTable::describe(std::uint32_t offset) const {
    const auto found = live_.find(offset);
    if (found == live_.end()) return "no mbarrier object";
    const Mbarrier object(found->second);
    return fmt::format("phase of parity {}: {} of {} arrivals pending, {} bytes of transactions outstanding",
                       object.phase() & 1, object.pending(), object.expected(), object.tx_count());
}

}  // namespace block_attention::simulator
