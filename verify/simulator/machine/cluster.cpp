#include "verify/simulator/machine/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace block_attention::simulator {

namespace {

/// A warp runs 1 to 2^k instructions before another one has its turn, k drawn from 0 to this.
constexpr std::uint32_t kMaxBurstExponent = 8;

/// A delay is 1 to 2^k, k drawn from 0 to a limit that is itself drawn from these bounds for each cluster.
constexpr std::uint32_t kLeastDelayExponent = 3;
constexpr std::uint32_t kMaxDelayExponent = 13;

/// How often the choice of a laggard is drawn again.
constexpr unsigned kLaggardRedraws = 4;

/// How often every wait times out, while nothing happens, before it counts as a deadlock: a kernel may try a wait once,
/// do something else, and come back.
constexpr unsigned kIdleRounds = 4;

}  // namespace

Cluster::Cluster(const Grid& grid) : grid_(grid) {
    for (unsigned rank = 0; rank < grid.cluster.count(); ++rank) {
        ctas_.push_back(std::make_unique<Cta>(*this, grid, rank));
    }
}

void Cluster::start(std::uint64_t number) {
    random_ = Random(grid_.seed, number);
    now_ = 0;
    executed_ = 0;
    idle_rounds_ = 0;
    stopped_ = false;
    threads_ = static_cast<std::uint32_t>(grid_.block.count() * size());
    barrier_arrived_ = 0;
    delays_ = Random(grid_.seed, ~number);
    delay_exponent_ = kLeastDelayExponent + delays_.below(kMaxDelayExponent - kLeastDelayExponent + 1);
    runnable_.clear();
    for (unsigned rank = 0; rank < size(); ++rank) {
        ctas_[rank]->start(number * size() + rank);
        for (Warp& warp : ctas_[rank]->warps()) runnable_.push_back(&warp);
    }
    draw_laggards();
}

/// In half of the clusters some warps have fewer turns than others: those of one CTA, or some of each. Otherwise all
/// would come equally far, and a wait that only matters for a straggler would never be missed.
void Cluster::draw_laggards() {
    enum class Mood : std::uint8_t { even, one_cta, some_warps };
    constexpr std::array kMoods{Mood::even, Mood::even, Mood::one_cta, Mood::some_warps};
    const Mood mood = kMoods.at(delays_.below(kMoods.size()));
    const std::uint32_t laggard = delays_.below(size());
    for (unsigned rank = 0; rank < size(); ++rank) {
        for (Warp& warp : ctas_[rank]->warps()) {
            const bool slow = mood == Mood::one_cta ? size() > 1 && rank == laggard
                                                    : mood == Mood::some_warps && delays_.below(4) == 0;
            warp.set_laggard(slow);
        }
    }
}

Warp& Cluster::choose_warp() {
    const auto count = static_cast<std::uint32_t>(runnable_.size());
    Warp* warp = runnable_[random_.below(count)];
    for (unsigned draw = 0; draw < kLaggardRedraws && warp->laggard() && count > 1; ++draw) {
        warp = runnable_[random_.below(count)];
    }
    return *warp;
}

bool Cluster::run() {
    for (;;) {
        if (!events_.empty() && (runnable_.empty() || events_.next_time() <= now_)) {
            now_ = std::max(now_, events_.next_time());
            events_.run_next();
            if (stopped_) break;
            continue;
        }
        if (runnable_.empty()) {
            if (time_out_waits()) continue;
            break;
        }
        Warp& warp = choose_warp();
        const std::uint32_t burst = 1 + random_.below(1U << random_.below(kMaxBurstExponent + 1));
        const std::uint32_t steps = warp.run(burst);
        executed_ += steps;
        now_ += steps;
        if (stopped_) break;
        if (!warp.runnable()) {
            std::erase(runnable_, &warp);
        } else if (!within_step_limit(warp)) {
            break;
        }
    }
    events_.clear();
    const bool finished = std::ranges::all_of(ctas_, [](const auto& cta) { return cta->finished(); });
    if (!finished && !stopped_ && runnable_.empty()) {
        for (const auto& cta : ctas_) cta->report_deadlock();
    }
    return finished && !stopped_;
}

bool Cluster::within_step_limit(Warp& warp) {
    if (executed_ <= grid_.step_limit * size()) return true;
    const Fragment& fragment = *std::ranges::find(warp.fragments(), Wait::none, &Fragment::wait);
    warp.report(Rule::step_limit, warp.program().code[fragment.pc], fragment.lanes, [&] {
        return fmt::format(
            "the CTA has executed {} warp instructions without coming to an end; the simulator's step limit stops it "
            "here",
            executed_);
    });
    return false;
}

bool Cluster::time_out_waits() {
    if (idle_rounds_ == kIdleRounds) return false;
    ++idle_rounds_;
    bool any = false;
    for (const auto& cta : ctas_) any |= cta->time_out_waits();
    return any;
}

std::uint64_t Cluster::draw_delay() { return 1 + delays_.below(1U << delays_.below(delay_exponent_ + 1)); }

void Cluster::wake(Warp& warp) {
    if (warp.runnable() && std::ranges::find(runnable_, &warp) == runnable_.end()) runnable_.push_back(&warp);
}

void Cluster::arrive(std::uint32_t threads) {
    barrier_arrived_ += threads;
    complete_barrier_if_full();
}

void Cluster::threads_exited(std::uint32_t threads, std::uint32_t arrived) {
    threads_ -= threads;
    barrier_arrived_ -= arrived;
    progress();
    complete_barrier_if_full();
}

void Cluster::complete_barrier_if_full() {
    if (barrier_arrived_ == 0 || barrier_arrived_ < threads_) return;
    barrier_arrived_ = 0;
    progress();
    for (const auto& cta : ctas_) cta->complete_cluster_barrier();
}

}  // namespace block_attention::simulator
