#include "verify/simulator/machine/grid.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

namespace {

/// The clusters of a grid, handed out in order to whichever thread is free.
class GridRun {
  public:
    explicit GridRun(const Grid& grid)
        : grid_(grid), count_(grid.grid.count() / grid.cluster.count()), collector_(grid) {}

    /// Runs clusters until there are no more.
    void work() {
        try {
            Cluster cluster(grid_);
            for (;;) {
                const std::uint64_t number = next_.fetch_add(1);
                if (number >= count_ || number > last_.load()) return;
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
            last_ = 0;
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
    FindingCollector collector_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> last_{UINT64_MAX};  ///< the first cluster that died: later ones don't count
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
