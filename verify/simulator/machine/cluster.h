#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "verify/simulator/machine/cta.h"
#include "verify/simulator/machine/event_queue.h"
#include "verify/simulator/machine/random.h"

namespace block_attention::simulator {

/// CTAs that run together: their warps take turns on one host thread, and so do the asynchronous operations that they
/// have started. Without clusters each CTA is one of its own. Used again for the next cluster of the grid.
///
/// Time counts the warp instructions executed, and jumps to the next event when no warp can run. It orders what
/// happens; it says nothing about how long a GPU would take.
class Cluster {
  public:
    explicit Cluster(const Grid& grid);
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Becomes cluster `number` of the grid, every CTA at the kernel's first instruction.
    void start(std::uint64_t number);
    /// Runs until every thread has exited or nothing can go on. Returns false if the cluster died: a trap, a deadlock,
    /// the step limit.
    bool run();

    [[nodiscard]] unsigned size() const { return static_cast<unsigned>(ctas_.size()); }
    [[nodiscard]] Cta& cta(unsigned rank) { return *ctas_[rank]; }
    [[nodiscard]] Random& random() { return random_; }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    [[nodiscard]] std::uint64_t executed() const { return executed_; }

    /// Runs `action` after a delay drawn from the seed: from at once to long after everybody else. How long delays can
    /// become is drawn anew for each cluster, so that some schedules have fast engines and some slow ones.
    void post(EventQueue::Action action) { events_.post(now_ + draw_delay(), std::move(action)); }
    /// Something happened that waiting threads may have waited for; see Cta::wake for who looks again.
    void progress() { idle_rounds_ = 0; }
    /// A warp may have become runnable.
    void wake(Warp& warp);

    /// Threads of the cluster arrive at its barrier (barrier.cluster.arrive); each must wait before it arrives again.
    void arrive(std::uint32_t threads);
    /// A warp's lanes have exited, `pending` of which had not arrived at the cluster's barrier.
    void threads_exited(std::uint32_t threads, std::uint32_t arrived);

    /// Stops every CTA where it is.
    void stop() { stopped_ = true; }
    [[nodiscard]] bool stopped() const { return stopped_; }

  private:
    std::uint64_t draw_delay();
    void draw_laggards();
    Warp& choose_warp();
    bool time_out_waits();
    bool within_step_limit(Warp& warp);
    void complete_barrier_if_full();

    const Grid& grid_;
    std::vector<std::unique_ptr<Cta>> ctas_;
    std::vector<Warp*> runnable_;
    EventQueue events_;
    Random random_{0, 0};
    Random delays_{0, 0};  ///< of its own, so that the warps' turns don't depend on asynchronous operations
    std::uint64_t now_ = 0;
    std::uint64_t executed_ = 0;
    std::uint32_t delay_exponent_ = 0;
    unsigned idle_rounds_ = 0;
    std::uint32_t threads_ = 0;          ///< that have not exited
    std::uint32_t barrier_arrived_ = 0;  ///< of them
    bool stopped_ = false;
};

}  // namespace block_attention::simulator
