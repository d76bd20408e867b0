#include "verify/simulator/machine/warp.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"
#include "verify/simulator/machine/registers_in_flight.h"

namespace block_attention::simulator {

namespace {

/// Of how many choices among diverged fragments one is not for the fragment furthest behind.
constexpr std::uint32_t kOutOfOrder = 16;

/// The key of a wait for convergence at an instruction that is no barrier.
constexpr std::uint32_t kNoBarrier = UINT32_MAX;

}  // namespace

std::string to_string_lanes(LaneMask lanes) {
    std::string text = std::popcount(lanes) == 1 ? "lane " : "lanes ";
    bool first = true;
    for (unsigned lane = 0; lane < kWarpSize;) {
        if ((lanes >> lane & 1) == 0) {
            ++lane;
            continue;
        }
        const auto run = static_cast<unsigned>(std::countr_one(lanes >> lane));
        if (!first) text += ", ";
        text += run > 1 ? fmt::format("{}-{}", lane, lane + run - 1) : fmt::format("{}", lane);
        first = false;
        lane += run;
    }
    return text;
}

Warp::Warp(Cta& cta, const Program& program, unsigned index, std::byte* registers, LaneMask* written)
    : cta_(cta),
      program_(program),
      in_flight_(std::make_unique<RegistersInFlight>(*this)),
      registers_(registers),
      written_(written),
      index_(index) {
    for (const auto& constant : program.constants) {
        const std::uint64_t value =
            constant.value + (constant.shared_address ? std::uint64_t{cta.rank()} << kSharedRankShift : 0);
        if (constant.bits == 1) {
            predicate(constant.slot) = value != 0 ? kAllLanes : 0;
        } else if (constant.bits <= 32) {
            std::fill_n(lanes_of<std::uint32_t>(constant.slot), kWarpSize, static_cast<std::uint32_t>(value));
        } else {
            std::fill_n(lanes_of<std::uint64_t>(constant.slot), kWarpSize, value);
        }
    }
}

Warp::~Warp() = default;
Warp::Warp(Warp&&) noexcept = default;

void Warp::start(unsigned threads) {
    in_flight_->clear();
    const std::size_t registers = program_.function->registers.size();
    std::fill_n(written_, registers, LaneMask{0});
    std::fill(written_ + registers, written_ + program_.slots, kAllLanes);
    alive_ = threads >= kWarpSize ? kAllLanes : (LaneMask{1} << threads) - 1;
    fragments_[0] = {0, alive_, Wait::none, 0, false};
    count_ = 1;
    cluster_arrived_ = 0;
    cluster_complete_ = 0;
}

bool Warp::runnable() const {
    return std::any_of(fragments_.begin(), fragments_.begin() + count_,
                       [](const Fragment& fragment) { return fragment.wait == Wait::none; });
}

std::uint32_t Warp::run(std::uint32_t budget) {
    const Decoded* code = program_.code.data();
    std::uint32_t left = budget;
    while (left > 0 && select()) {
        const std::uint32_t before = left;
        const LaneMask lanes = lanes_;
        std::uint32_t pc = fragments_[current_].pc;
        Outcome outcome = Outcome::next;
        do {
            const Decoded& instruction = code[pc];
            active_ = lanes;
            --left;
            if (instruction.guarded) {
                require(instruction, instruction.guard);
                active_ &= predicate(instruction.guard) ^ instruction.guard_flip;
                if (active_ == 0) {
                    ++pc;
                    continue;
                }
            }
            outcome = instruction.execute(*this, instruction);
            pc = outcome == Outcome::jump ? instruction.target : pc + 1;
        } while (outcome != Outcome::reschedule && left > 0 && pc < limit_);
        if (outcome != Outcome::reschedule) fragments_[current_].pc = pc;
        cta_.count_lanes(std::uint64_t{before - left} * static_cast<unsigned>(std::popcount(lanes)));
    }
    return budget - left;
}

void Warp::merge() {
    for (unsigned i = 0; i < count_; ++i) {
        if (fragments_[i].wait != Wait::none) continue;
        for (unsigned j = count_ - 1; j > i; --j) {
            if (fragments_[j].wait != Wait::none || fragments_[j].pc != fragments_[i].pc) continue;
            fragments_[i].lanes |= fragments_[j].lanes;
            fragments_[i].timed_out |= fragments_[j].timed_out;
            remove_fragment(j);
        }
    }
}

bool Warp::select() {
    if (cta_.stopped()) return false;
    if (count_ > 1) merge();
    limit_ = UINT32_MAX;
    std::uint32_t lowest = UINT32_MAX;
    unsigned runnable = 0;
    for (unsigned i = 0; i < count_; ++i) {
        if (fragments_[i].wait != Wait::none) continue;
        ++runnable;
        if (fragments_[i].pc < lowest) {
            limit_ = lowest;
            lowest = fragments_[i].pc;
            current_ = i;
        } else {
            limit_ = std::min(limit_, fragments_[i].pc);
        }
    }
    if (runnable == 0) return false;
    if (runnable > 1 && cta_.random().below(kOutOfOrder) == 0) {
        std::uint32_t skip = cta_.random().below(runnable);
        for (unsigned i = 0; i < count_; ++i) {
            if (fragments_[i].wait == Wait::none && skip-- == 0) {
                current_ = i;
                limit_ = UINT32_MAX;
                break;
            }
        }
    }
    lanes_ = fragments_[current_].lanes;
    return true;
}

void Warp::detach(const Decoded& instruction) {
    const LaneMask passing = lanes_ & ~active_;
    if (passing == 0) {
        remove_fragment(current_);
    } else {
        fragments_[current_] = {index_of(instruction) + 1, passing, Wait::none, 0, false};
    }
}

void Warp::diverge(const Decoded& instruction, std::uint32_t target) {
    detach(instruction);
    resume(active_, target);
}

void Warp::resume(LaneMask lanes, std::uint32_t pc) { add_fragment({pc, lanes, Wait::none, 0, false}); }

void Warp::exit(const Decoded& instruction) {
    detach(instruction);
    alive_ &= ~active_;
    // Whoever waited for lanes of this warp looks again: those that have exited need not come.
    for (unsigned i = 0; i < count_; ++i) {
        if (fragments_[i].wait != Wait::barrier) fragments_[i].wait = Wait::none;
    }
    const auto threads = static_cast<std::uint32_t>(std::popcount(active_));
    cta_.cluster().threads_exited(threads, static_cast<std::uint32_t>(std::popcount(active_ & cluster_arrived_)));
    if (alive_ == 0) cta_.warp_finished();
}

bool Warp::converged(const Decoded& instruction) {
    if (active_ == alive_) return true;
    park(instruction, Wait::convergence, kNoBarrier);
    const std::uint32_t pc = index_of(instruction);
    const auto waits_here = [&](const Fragment& fragment) {
        return fragment.wait == Wait::convergence && fragment.key == kNoBarrier && fragment.pc == pc;
    };
    LaneMask together = 0;
    for (const Fragment& fragment : fragments()) together |= waits_here(fragment) ? fragment.lanes : 0;
    if (together != alive_) return false;
    for (unsigned i = 0; i < count_; ++i) {
        if (waits_here(fragments_[i])) fragments_[i].wait = Wait::none;
    }
    return false;
}

Outcome Warp::park(const Decoded& instruction, Wait wait, std::uint32_t key) {
    detach(instruction);
    add_fragment({index_of(instruction), active_, wait, key, false});
    return Outcome::reschedule;
}

bool Warp::wake(Wait wait, std::optional<std::uint32_t> key) {
    bool any = false;
    for (unsigned i = 0; i < count_; ++i) {
        if (fragments_[i].wait != wait || (key && fragments_[i].key != *key)) continue;
        fragments_[i].wait = Wait::none;
        any = true;
    }
    return any;
}

bool Warp::time_out_waits() {
    for (unsigned i = 0; i < count_; ++i) {
        if (fragments_[i].wait == Wait::mbarrier) fragments_[i].timed_out = true;
    }
    return wake(Wait::mbarrier, std::nullopt);
}

void Warp::complete_cluster_barrier() {
    cluster_complete_ |= std::exchange(cluster_arrived_, 0);
    wake(Wait::cluster_barrier, std::nullopt);
}

LaneMask Warp::meet(const Decoded& instruction, LaneMask group, LaneMask required, Fragment waiting, bool any_place,
                    Wait then) {
    const std::uint32_t pc = index_of(instruction);
    const auto matches = [&](const Fragment& other) {
        return other.wait == waiting.wait && other.key == waiting.key && (any_place || other.pc == pc);
    };
    LaneMask together = group;
    for (unsigned i = 0; i < count_; ++i) {
        if (matches(fragments_[i])) together |= fragments_[i].lanes;
    }
    if ((required & ~together) != 0) {
        add_fragment({pc, group, waiting.wait, waiting.key, false});
        return 0;
    }
    LaneMask here = group;
    for (unsigned i = count_; i-- > 0;) {
        Fragment& other = fragments_[i];
        if (!matches(other)) continue;
        if (other.pc == pc) {
            here |= other.lanes;
            remove_fragment(i);
        } else {
            other.wait = then;
            if (then == Wait::none) ++other.pc;
        }
    }
    return here;
}

void Warp::wait_at_barrier(LaneMask lanes, std::uint32_t pc, std::uint32_t number) {
    add_fragment({pc, lanes, Wait::barrier, number, false});
}

void Warp::release(std::uint32_t number, const BarrierReduction& reduction) {
    for (unsigned i = 0; i < count_; ++i) {
        Fragment& fragment = fragments_[i];
        if (fragment.wait != Wait::barrier || fragment.key != number) continue;
        const Decoded& instruction = program_.code[fragment.pc];
        active_ = fragment.lanes;
        if (instruction.complete != nullptr) instruction.complete(*this, instruction, reduction);
        fragment.wait = Wait::none;
        ++fragment.pc;
    }
}

void Warp::report(Rule rule, const Decoded& instruction, LaneMask lanes, const std::function<std::string()>& describe) {
    const auto first = static_cast<unsigned>(std::countr_zero(lanes));
    cta_.findings().add(rule, index_of(instruction), cta_.thread(*this, first),
                        static_cast<std::uint64_t>(std::popcount(lanes)), describe);
}

void Warp::report_unwritten(const Decoded& instruction, std::span<const Slot> slots) {
    for (const Slot slot : slots) {
        const LaneMask missing = active_ & ~written(slot);
        if (missing == 0) continue;
        const ptx::Register& reg = program_.function->registers[slot.index];
        report(Rule::uninitialized_read, instruction, missing, [&] {
            const std::string why = in_flight_->explain(slot);
            return fmt::format("register {} is read by {} of warp {} before anything was written to it{}{}", reg.name,
                               to_string_lanes(missing), index_, why.empty() ? "" : ": ", why);
        });
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            if ((missing >> lane & 1) == 0) continue;
            switch (reg.register_class) {
                case ptx::RegisterClass::predicate:
                    predicate(slot) &= ~(LaneMask{1} << lane);
                    break;
                case ptx::RegisterClass::b8:
                    lanes_of<std::uint32_t>(slot)[lane] = kPoison & 0xFF;
                    break;
                case ptx::RegisterClass::b16:
                    lanes_of<std::uint32_t>(slot)[lane] = kPoison & 0xFFFF;
                    break;
                case ptx::RegisterClass::b32:
                    lanes_of<std::uint32_t>(slot)[lane] = static_cast<std::uint32_t>(kPoison);
                    break;
                case ptx::RegisterClass::b128:
                    lanes_of<std::uint64_t>(slot)[kWarpSize + lane] = kPoison;
                    [[fallthrough]];
                case ptx::RegisterClass::b64:
                    lanes_of<std::uint64_t>(slot)[lane] = kPoison;
                    break;
            }
        }
    }
}

}  // namespace block_attention::simulator
