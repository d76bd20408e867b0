#include "verify/simulator/machine/grid.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/random.h"

namespace block_attention::simulator {

namespace {

/// The order in which a grid's clusters start. The hardware promises none, so the seed draws one: every `stride`-th
/// cluster, round and round.
class StartOrder {
  public:
    StartOrder(std::uint64_t seed, std::uint64_t count) : count_(count) {
        if (count < 2 || count > kMost) return;
        Random random(seed, kStream);
        first_ = random.below(static_cast<std::uint32_t>(count));
        do {
            stride_ = 1 + random.below(static_cast<std::uint32_t>(count - 1));
        } while (std::gcd(stride_, count) != 1);
    }

    /// The number of the cluster that starts as number `position`.
    [[nodiscard]] std::uint64_t at(std::uint64_t position) const {
        return count_ > kMost ? position : (first_ + position * stride_) % count_;
    }

  private:
    static constexpr std::uint64_t kMost = std::uint64_t{1} << 31;    // products stay below 2^64
    static constexpr std::uint64_t kStream = std::uint64_t{1} << 63;  // apart from those of clusters

    std::uint64_t count_;
    std::uint64_t first_ = 0;
    std::uint64_t stride_ = 1;
};

/// The clusters of a grid, handed out to whichever thread is free.
class GridRun {
  public:
    explicit GridRun(const Grid& grid)
        : grid_(grid), count_(grid.grid.count() / grid.cluster.count()), order_(grid.seed, count_), collector_(grid) {}

    /// Runs clusters until there are no more.
    void work() {
        try {
            Cluster cluster(grid_);
            for (;;) {
                const std::uint64_t position = next_.fetch_add(1);
                if (position >= count_) return;
                const std::uint64_t number = order_.at(position);
                if (number > last_.load()) continue;
                cluster.start(number);
                const bool completed = cluster.run();
                warp_instructions_ += cluster.executed();
                for (unsigned rank = 0; rank < cluster.size(); ++rank) {
                    Cta& cta = cluster.cta(rank);
                    collector_.add(cta.number(), cta.findings());
                    lane_instructions_ += cta.executed_lanes();
                }
                if (!completed) stop_after(number);
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            exception_ = std::current_exception();
            next_ = count_;
        }
    }

    GridResult result(std::size_t finding_limit) {
        if (exception_) std::rethrow_exception(exception_);
        const bool completed = last_ == UINT64_MAX;
        const std::uint64_t last_cta = completed ? UINT64_MAX : (last_ + 1) * grid_.cluster.count() - 1;
        return {completed, collector_.report(last_cta, finding_limit), warp_instructions_, lane_instructions_};
    }

  private:
    void stop_after(std::uint64_t number) {
        std::uint64_t last = last_;
        while (number < last && !last_.compare_exchange_weak(last, number)) {
        }
    }

    const Grid& grid_;
    std::uint64_t count_;
    StartOrder order_;
    FindingCollector collector_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> last_{UINT64_MAX};  ///< the lowest that died: higher ones don't count
    std::atomic<std::uint64_t> warp_instructions_{0};
    std::atomic<std::uint64_t> lane_instructions_{0};
    std::mutex mutex_;
    std::exception_ptr exception_;
};

}  // namespace

GridResult run_grid(const Grid& grid, unsigned host_threads, std::size_t finding_limit) {
    GridRun run(grid);
    const unsigned available = host_threads != 0 ? host_threads : std::max(1U, std::thread::hardware_concurrency());
    const auto threads =
        static_cast<unsigned>(std::min<std::uint64_t>(available, grid.grid.count() / grid.cluster.count()));
    {
        std::vector<std::jthread> workers;
        for (unsigned i = 1; i < threads; ++i) workers.emplace_back([&run] { run.work(); });
        run.work();
    }
    return run.result(finding_limit);
}

}  // namespace block_attention::simulator
