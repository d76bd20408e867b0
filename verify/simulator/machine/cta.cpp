#include "verify/simulator/machine/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/poison.h"
#include "verify/simulator/machine/special_registers.h"

namespace block_attention::simulator {

namespace {

/// A warp runs 1 to 2^k instructions before another one has its turn, k drawn from 0 to this.
constexpr std::uint32_t kMaxBurstExponent = 8;

/// The distance of two lanes' local memories: an odd number of host cache lines, so that the lanes of a warp, which
/// mostly access the same local address, don't compete for the same sets of a cache.
std::uint32_t local_stride_of(std::uint32_t bytes) {
    constexpr std::uint32_t kLine = 64;
    const std::uint32_t lines = (bytes + kLine - 1) / kLine;
    return lines == 0 ? 0 : (lines | 1) * kLine;
}

unsigned warps_of(Dim3 block) { return static_cast<unsigned>((block.count() + kWarpSize - 1) / kWarpSize); }

}  // namespace

Cta::Cta(const Grid& grid)
    : grid_(grid),
      program_(*grid.program),
      local_stride_(local_stride_of(program_.local_bytes)),
      registers_(std::size_t{warps_of(grid.block)} * program_.register_bytes),
      written_(std::size_t{warps_of(grid.block)} * program_.slots),
      shared_(grid.shared_bytes),
      shared_shadow_(grid.shared_bytes),
      local_(std::size_t{warps_of(grid.block)} * kWarpSize * local_stride_),
      local_shadow_(std::size_t{warps_of(grid.block)} * kWarpSize * local_stride_),
      last_allocations_(program_.code.size()) {
    const unsigned count = warps_of(grid.block);
    std::fill_n(registers_.data(), std::size_t{count} * program_.register_bytes, std::byte{0});
    warps_.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        warps_.emplace_back(*this, program_, i, registers_.data() + std::size_t{i} * program_.register_bytes,
                            written_.data() + std::size_t{i} * program_.slots);
    }
}

void Cta::start(std::uint64_t number) {
    number_ = number;
    random_ = Random(grid_.seed, number);
    executed_ = 0;
    executed_lanes_ = 0;
    stopped_ = false;
    barriers_ = {};
    findings_.clear();
    std::fill_n(shared_.data(), grid_.shared_bytes, static_cast<std::byte>(kPoison & 0xFF));
    std::fill_n(shared_shadow_.data(), grid_.shared_bytes, std::byte{0});
    const std::size_t local_bytes = warps_.size() * kWarpSize * local_stride_;
    std::fill_n(local_.data(), local_bytes, static_cast<std::byte>(kPoison & 0xFF));
    std::fill_n(local_shadow_.data(), local_bytes, std::byte{0});
    runnable_.clear();
    const auto threads = static_cast<unsigned>(grid_.block.count());
    for (Warp& warp : warps_) {
        warp.start(threads - warp.index() * kWarpSize);
        fill_special_registers(warp);
        runnable_.push_back(warp.index());
    }
}

void Cta::fill_special_registers(Warp& warp) {
    for (const SpecialUse& use : program_.specials) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            const std::uint64_t value = special_register(use.name, *this, warp, lane);
            if (use.bits <= 32) {
                warp.lanes_of<std::uint32_t>(use.slot)[lane] =
                    static_cast<std::uint32_t>(use.bits == 16 ? value & 0xFFFF : value);
            } else {
                warp.lanes_of<std::uint64_t>(use.slot)[lane] = value;
            }
        }
    }
}

bool Cta::run() {
    while (!runnable_.empty()) {
        const std::uint32_t choice = random_.below(static_cast<std::uint32_t>(runnable_.size()));
        Warp& warp = warps_[runnable_[choice]];
        const std::uint32_t burst = 1 + random_.below(1U << random_.below(kMaxBurstExponent + 1));
        executed_ += warp.run(burst);
        if (stopped_) return false;
        if (!warp.runnable()) {
            std::erase(runnable_, warp.index());
        } else if (executed_ > grid_.step_limit) {
            const Fragment& fragment = *std::ranges::find(warp.fragments(), Wait::none, &Fragment::wait);
            warp.report(Rule::step_limit, program_.code[fragment.pc], fragment.lanes, [&] {
                return fmt::format(
                    "the CTA has executed {} warp instructions without coming to an end; the simulator's step limit "
                    "stops it here",
                    executed_);
            });
            return false;
        }
    }
    const bool finished = std::ranges::all_of(warps_, &Warp::finished);
    if (!finished) report_deadlock();
    return finished;
}

std::optional<std::string> Cta::arrive(const BarrierArrival& arrival) {
    Barrier& barrier = barriers_[arrival.number];
    std::optional<std::string> fault;
    if (barrier.arrived != 0 && barrier.expected != arrival.threads) {
        const auto words = [](std::uint32_t threads) {
            return threads == 0 ? std::string("all threads") : fmt::format("{} threads", threads);
        };
        fault = fmt::format("barrier {} is awaited with different counts: {} here, {} by those that arrived before",
                            arrival.number, words(arrival.threads), words(barrier.expected));
    }
    if (barrier.arrived == 0) barrier.expected = arrival.threads;
    barrier.arrived += kWarpSize;
    barrier.reduction.count += arrival.true_lanes;
    barrier.reduction.threads += arrival.lanes;
    complete_if_full(arrival.number);
    return fault;
}

void Cta::complete_if_full(std::uint32_t number) {
    Barrier& barrier = barriers_[number];
    std::uint32_t expected = barrier.expected;
    if (expected == 0) {
        expected = kWarpSize * static_cast<std::uint32_t>(std::ranges::count(warps_, false, &Warp::finished));
    }
    if (barrier.arrived == 0 || barrier.arrived < expected) return;
    const BarrierReduction reduction = barrier.reduction;
    barrier = {};
    for (Warp& warp : warps_) {
        warp.release(number, reduction);
        wake(warp);
    }
}

void Cta::wake(Warp& warp) {
    if (warp.runnable() && std::ranges::find(runnable_, warp.index()) == runnable_.end()) {
        runnable_.push_back(warp.index());
    }
}

void Cta::warp_finished() {
    for (std::uint32_t number = 0; number < kBarriers; ++number) {
        if (barriers_[number].expected == 0) complete_if_full(number);
    }
}

void Cta::report_deadlock() {
    const auto waiting = std::ranges::find(warps_, false, &Warp::finished);
    const Fragment& fragment = waiting->fragments().front();
    waiting->report(Rule::deadlock, program_.code[fragment.pc], fragment.lanes,
                    [&] { return "no thread of the CTA can go on: " + describe_waiters(); });
}

std::string Cta::describe_waiters() const {
    // Warps that wait alike are listed together.
    std::map<std::tuple<std::uint32_t, Wait, std::uint32_t, LaneMask>, std::vector<unsigned>> groups;
    for (const Warp& warp : warps_) {
        for (const Fragment& fragment : warp.fragments()) {
            groups[{fragment.pc, fragment.wait, fragment.key, fragment.lanes}].push_back(warp.index());
        }
    }
    std::string text;
    for (const auto& [how, warps] : groups) {
        const auto& [pc, wait, key, lanes] = how;
        const SourcePlace place = source_place(program_, pc);
        if (!text.empty()) text += "; ";
        text += fmt::format("{} {}, {}, at {}:{} ({})", warps.size() == 1 ? "warp" : "warps", fmt::join(warps, ", "),
                            to_string_lanes(lanes), place.file, place.line, instruction_text(program_, pc));
        switch (wait) {
            case Wait::none:
                break;
            case Wait::lanes:
                text += fmt::format(" for the lanes of member mask {:#010x} to reach it", key);
                break;
            case Wait::warp_barrier:
                text += fmt::format(" for the lanes of member mask {:#010x}", key);
                break;
            case Wait::convergence:
                text += " for the rest of the warp, which is elsewhere, to reach it";
                break;
            case Wait::barrier:
                text += barriers_[key].expected == 0
                            ? fmt::format(" for all threads to reach barrier {}", key)
                            : fmt::format(" for {} threads to reach barrier {}, of which {} have",
                                          barriers_[key].expected, key, barriers_[key].arrived);
                break;
        }
    }
    const auto exited = std::ranges::count(warps_, true, &Warp::finished);
    if (exited > 0) text += fmt::format("; {} of {} warps have exited", exited, warps_.size());
    return text;
}

}  // namespace block_attention::simulator
