#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/async_groups.h"
#include "verify/simulator/machine/finding_log.h"
#include "verify/simulator/machine/global_memory.h"
#include "verify/simulator/machine/mbarrier_table.h"
#include "verify/simulator/machine/random.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

class Cluster;
class Tcgen05Queue;
class WgmmaQueue;

/// What the CTAs of one launch share.
struct Grid {
    std::shared_ptr<const Program> program;
    GlobalMemory* memory = nullptr;
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;  ///< CTAs, a divisor of `grid` in each dimension
    bool explicit_cluster = false;
    std::uint32_t dynamic_shared_bytes = 0;
    std::uint32_t shared_bytes = 0;  ///< static and dynamic, from kSharedBase
    AlignedBytes parameters;
    std::uint64_t seed = 0;
    std::uint64_t step_limit = 0;  ///< warp instructions a CTA may execute
    std::uint64_t number = 0;      ///< of the launch: %gridid
    std::uint32_t multiprocessors = 1;

    /// CTAs are numbered cluster by cluster, by their rank in each; x runs fastest among clusters and in them.
    [[nodiscard]] Dim3 cluster_id(std::uint64_t cta) const;
    [[nodiscard]] Dim3 cta_id(std::uint64_t cta) const;
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

/// A thread block: its warps, its shared memory, its barriers.
class Cta {
  public:
    Cta(Cluster& cluster, const Grid& grid, unsigned rank);
    ~Cta();
    Cta(const Cta&) = delete;
    Cta& operator=(const Cta&) = delete;

    /// Becomes CTA `number` of the grid, at the kernel's first instruction.
    void start(std::uint64_t number);

    [[nodiscard]] const Grid& grid() const { return grid_; }
    [[nodiscard]] Cluster& cluster() const { return cluster_; }
    /// In the cluster: %cluster_ctarank.
    [[nodiscard]] unsigned rank() const { return rank_; }
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] Dim3 id() const { return grid_.cta_id(number_); }
    [[nodiscard]] std::vector<Warp>& warps() { return warps_; }
    [[nodiscard]] bool finished() const;
    [[nodiscard]] FindingLog& findings() { return findings_; }
    [[nodiscard]] Random& random() const;
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
    /// Stops the whole cluster where it is.
    void stop();
    [[nodiscard]] bool stopped() const;

    /// The mbarrier objects in shared memory. Whatever may complete a phase goes through operate_mbarrier.
    [[nodiscard]] MbarrierTable& mbarriers() { return mbarriers_; }
    /// Also lets those continue who wait for the phase, if it completes. `offset` is the object's place in this CTA.
    MbarrierOutcome operate_mbarrier(std::uint32_t offset, MbarrierOperation operation, std::uint32_t operand);

    /// A thread's groups of cp.async, and of cp.async.bulk with .bulk_group.
    [[nodiscard]] AsyncGroups& copy_groups(const Warp& warp, unsigned lane) {
        return copy_groups_[warp.index() * kWarpSize + lane];
    }
    [[nodiscard]] AsyncGroups& bulk_groups(const Warp& warp, unsigned lane) {
        return bulk_groups_[warp.index() * kWarpSize + lane];
    }

    /// The wgmmas of a warp that are in flight.
    [[nodiscard]] WgmmaQueue& wgmma_queue(const Warp& warp) { return *wgmma_queues_[warp.index()]; }
    /// A warp issues a wgmma; reports it if another warp of its warpgroup issued something else as its own wgmma of the
    /// same number.
    void check_warpgroup(Warp& warp, const Decoded& instruction, std::array<std::uint64_t, 2> descriptors);
    /// The CTA's Tensor Memory and what tcgen05 has in flight. Made when it is first asked for.
    [[nodiscard]] Tcgen05Queue& tcgen05();

    /// Fragments that wait for this look again: those of `key`, or of any.
    void wake(Wait wait, std::optional<std::uint32_t> key = std::nullopt);
    /// Ends the waits that may end without a reason. Returns whether there were any.
    bool time_out_waits();
    /// The cluster's barrier is complete.
    void complete_cluster_barrier();
    void report_deadlock();

    /// A time that only grows: %clock64, %globaltimer.
    [[nodiscard]] std::uint64_t clock() const;

  private:
    struct Barrier {
        std::uint32_t expected = 0;  ///< threads; 0: all that have not exited
        std::uint32_t arrived = 0;
        BarrierReduction reduction;
    };

    /// The wgmmas that warps of a warpgroup have issued and others have yet to.
    struct WarpgroupLog {
        struct Entry {
            const Decoded* instruction = nullptr;
            std::array<std::uint64_t, 2> descriptors{};
        };
        std::deque<Entry> entries;
        std::array<std::size_t, 4> issued{};  ///< by each warp, of the entries
    };

    void complete_if_full(std::uint32_t number);
    void fill_special_registers(Warp& warp);
    [[nodiscard]] std::string describe_waiters() const;
    [[nodiscard]] std::string describe_wait(const Fragment& fragment) const;

    Cluster& cluster_;
    const Grid& grid_;
    const Program& program_;
    unsigned rank_;
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
    std::array<Barrier, kBarriers> barriers_;
    MbarrierTable mbarriers_;
    std::vector<AsyncGroups> copy_groups_;
    std::vector<AsyncGroups> bulk_groups_;
    std::vector<std::unique_ptr<WgmmaQueue>> wgmma_queues_;
    std::vector<WarpgroupLog> warpgroups_;
    std::unique_ptr<Tcgen05Queue> tcgen05_;
    FindingLog findings_;
    std::uint64_t executed_lanes_ = 0;
};

}  // namespace block_attention::simulator
