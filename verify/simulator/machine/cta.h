#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/finding_log.h"
#include "verify/simulator/machine/global_memory.h"
#include "verify/simulator/machine/random.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

/// What the CTAs of one launch share.
struct Grid {
    std::shared_ptr<const Program> program;
    GlobalMemory* memory = nullptr;
    Dim3 grid;
    Dim3 block;
    std::uint32_t dynamic_shared_bytes = 0;
    std::uint32_t shared_bytes = 0;  ///< static and dynamic, from kSharedBase
    AlignedBytes parameters;
    std::uint64_t seed = 0;
    std::uint64_t step_limit = 0;  ///< warp instructions a CTA may execute
    std::uint64_t number = 0;      ///< of the launch: %gridid
    std::uint32_t multiprocessors = 1;
};

inline constexpr unsigned kBarriers = 16;

/// What arrives at a barrier of the CTA (bar, barrier): a whole warp.
struct BarrierArrival {
    std::uint32_t number = 0;
    std::uint32_t threads = 0;     ///< expected; 0: all threads of the CTA that have not exited
    std::uint32_t true_lanes = 0;  ///< bar.red: how many of the warp's threads have a true operand
    std::uint32_t lanes = 0;       ///< bar.red: of how many
};

/// The result of a completed barrier's reduction (bar.red).
struct BarrierReduction {
    std::uint32_t count = 0;    ///< of true predicates
    std::uint32_t threads = 0;  ///< that contributed one
};

/// A thread block: its warps, its shared memory, its barriers. Runs on one host thread, and is used again for the next
/// block of the grid.
class Cta {
  public:
    explicit Cta(const Grid& grid);
    Cta(const Cta&) = delete;
    Cta& operator=(const Cta&) = delete;

    /// Becomes block `number` of the grid, at the kernel's first instruction.
    void start(std::uint64_t number);
    /// Runs until every thread has exited or nothing can go on. Returns false if the block died: a trap, a deadlock,
    /// the step limit.
    bool run();

    [[nodiscard]] const Grid& grid() const { return grid_; }
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] Dim3 id() const { return unflatten(number_, grid_.grid); }
    [[nodiscard]] FindingLog& findings() { return findings_; }
    [[nodiscard]] Random& random() { return random_; }
    [[nodiscard]] std::uint64_t executed() const { return executed_; }
    [[nodiscard]] std::uint64_t executed_lanes() const { return executed_lanes_; }
    void count_lanes(std::uint64_t lanes) { executed_lanes_ += lanes; }

    /// The thread of a lane.
    [[nodiscard]] Dim3 thread(const Warp& warp, unsigned lane) const {
        return unflatten(warp.index() * kWarpSize + lane, grid_.block);
    }

    [[nodiscard]] std::byte* shared_data() const { return shared_.data(); }
    [[nodiscard]] std::byte* shared_shadow() const { return shared_shadow_.data(); }
    /// Local memory of a warp: kWarpSize times local_stride() bytes.
    [[nodiscard]] std::byte* local_data(const Warp& warp) const {
        return local_.data() + std::size_t{warp.index()} * kWarpSize * local_stride_;
    }
    [[nodiscard]] std::byte* local_shadow(const Warp& warp) const {
        return local_shadow_.data() + std::size_t{warp.index()} * kWarpSize * local_stride_;
    }
    [[nodiscard]] std::uint32_t local_stride() const { return local_stride_; }

    /// The buffer that an instruction accessed last: it usually accesses the same one again.
    [[nodiscard]] const Allocation*& last_allocation(std::uint32_t instruction) {
        return last_allocations_[instruction];
    }

    /// A whole warp arrives at a barrier; if it waits there, its fragments are already in place
    /// (Warp::wait_at_barrier). Returns what is wrong with the arrival, which then still counts as far as it can, or
    /// nothing.
    std::optional<std::string> arrive(const BarrierArrival& arrival);
    /// A warp has lost its last lane.
    void warp_finished();
    /// Stops the block where it is.
    void stop() { stopped_ = true; }
    [[nodiscard]] bool stopped() const { return stopped_; }

    /// A time that only grows: %clock64, %globaltimer.
    [[nodiscard]] std::uint64_t clock() const { return executed_; }

  private:
    struct Barrier {
        std::uint32_t expected = 0;  ///< threads; 0: all that have not exited
        std::uint32_t arrived = 0;
        BarrierReduction reduction;
    };

    void complete_if_full(std::uint32_t number);
    void wake(Warp& warp);
    void fill_special_registers(Warp& warp);
    void report_deadlock();
    [[nodiscard]] std::string describe_waiters() const;

    const Grid& grid_;
    const Program& program_;
    std::uint64_t number_ = 0;
    std::uint32_t local_stride_ = 0;
    AlignedBytes registers_;
    std::vector<LaneMask> written_;
    AlignedBytes shared_;
    AlignedBytes shared_shadow_;
    AlignedBytes local_;
    AlignedBytes local_shadow_;
    std::vector<const Allocation*> last_allocations_;
    std::vector<Warp> warps_;
    std::vector<unsigned> runnable_;
    std::array<Barrier, kBarriers> barriers_;
    FindingLog findings_;
    Random random_{0, 0};
    std::uint64_t executed_ = 0;
    std::uint64_t executed_lanes_ = 0;
    bool stopped_ = false;
};

}  // namespace block_attention::simulator
