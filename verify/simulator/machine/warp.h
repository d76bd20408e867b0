#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/finding_log.h"

namespace block_attention::simulator {

class Cta;
class RegistersInFlight;

/// What the lanes of a fragment are waiting for before they go on.
enum class Wait : std::uint8_t {
    none,
    lanes,         ///< at a warp-wide instruction, for the lanes of the member mask in `key` to reach it as well
    warp_barrier,  ///< at a bar.warp.sync, for the lanes of the member mask in `key` to reach any bar.warp.sync
    convergence,   ///< at an instruction that the rest of the warp must reach as well; `key` is a barrier's number
    barrier,       ///< at barrier `key` of the CTA, for other warps
    // The fragment executes its instruction again when it is woken.
    mbarrier,         ///< for a phase of the mbarrier object at offset `key` of the CTA's shared memory; may time out
    engine,           ///< for asynchronous operations of the warp's threads
    cluster_barrier,  ///< for the rest of the cluster
    tensor_memory,    ///< for `key` columns of Tensor Memory
};

/// Lanes of a warp that share a program counter.
struct Fragment {
    std::uint32_t pc = 0;
    LaneMask lanes = 0;
    Wait wait = Wait::none;
    std::uint32_t key = 0;
    bool timed_out = false;  ///< the wait for an mbarrier has ended without a reason
};

/// 32 threads, each with its own program counter: as many fragments as the lanes have diverged into.
///
/// The fragment that is furthest behind usually runs, so that diverged lanes meet again as soon as their program
/// counters do; now and then another one does, as independent thread scheduling allows.
class Warp {
  public:
    /// `registers` and `written` are this warp's share of its CTA's memory: Program::register_bytes, Program::slots.
    Warp(Cta& cta, const Program& program, unsigned index, std::byte* registers, LaneMask* written);

    ~Warp();
    Warp(Warp&&) noexcept;

    /// Puts the first `threads` lanes at the start of the kernel.
    void start(unsigned threads);
    /// Executes up to `budget` instructions, fewer if no lane can run. Returns how many.
    std::uint32_t run(std::uint32_t budget);

    [[nodiscard]] bool runnable() const;
    /// Whether it has fewer turns than other warps; see Cluster.
    [[nodiscard]] bool laggard() const { return laggard_; }
    void set_laggard(bool laggard) { laggard_ = laggard; }
    [[nodiscard]] bool finished() const { return alive_ == 0; }
    /// The lanes that exist and have not exited.
    [[nodiscard]] LaneMask alive() const { return alive_; }
    [[nodiscard]] unsigned index() const { return index_; }
    [[nodiscard]] std::span<const Fragment> fragments() const { return {fragments_.data(), count_}; }
    [[nodiscard]] Cta& cta() const { return cta_; }
    [[nodiscard]] const Program& program() const { return program_; }

    // What an executor sees of the instruction at hand.

    /// The lanes that execute it.
    [[nodiscard]] LaneMask active() const { return active_; }
    /// Whether those are all lanes of the running fragment.
    [[nodiscard]] bool all_active() const { return active_ == lanes_; }
    [[nodiscard]] unsigned first_lane() const { return static_cast<unsigned>(std::countr_zero(active_)); }
    [[nodiscard]] std::uint32_t index_of(const Decoded& instruction) const {
        return static_cast<std::uint32_t>(&instruction - program_.code.data());
    }

    /// A register's 32 lanes. `Cell` is uint32_t for up to 32 bits, uint64_t for more.
    template <typename Cell>
    [[nodiscard]] Cell* lanes_of(Slot slot) const {
        return reinterpret_cast<Cell*>(registers_ + slot.offset);
    }
    [[nodiscard]] LaneMask& predicate(Slot slot) const {
        return *reinterpret_cast<LaneMask*>(registers_ + slot.offset);
    }
    [[nodiscard]] LaneMask& written(Slot slot) const { return written_[slot.index]; }

    /// Reports registers that active lanes read before they were written, and gives those lanes poison.
    template <typename... Slots>
    void require(const Decoded& instruction, Slots... slots) {
        if ((active_ & ~(written(slots) & ...)) != 0) [[unlikely]] {
            const std::array list{slots...};
            report_unwritten(instruction, list);
        }
    }
    void report_unwritten(const Decoded& instruction, std::span<const Slot> slots);

    /// Registers that asynchronous operations will write.
    [[nodiscard]] RegistersInFlight& in_flight() { return *in_flight_; }

    /// Stores the active lanes of a result and marks them written.
    template <typename Cell>
    void commit(Slot slot, const std::array<Cell, kWarpSize>& result) {
        Cell* to = lanes_of<Cell>(slot);
        if (active_ == kAllLanes) {
            for (unsigned lane = 0; lane < kWarpSize; ++lane) to[lane] = result[lane];
        } else {
            for (unsigned lane = 0; lane < kWarpSize; ++lane) {
                to[lane] = (active_ >> lane & 1) != 0 ? result[lane] : to[lane];
            }
        }
        written(slot) |= active_;
    }
    void commit_predicate(Slot slot, LaneMask result) {
        LaneMask& to = predicate(slot);
        to = (to & ~active_) | (result & active_);
        written(slot) |= active_;
    }

    /// Records a finding about some lanes; `describe` makes its message if it is the CTA's first at this instruction.
    void report(Rule rule, const Decoded& instruction, LaneMask lanes, const std::function<std::string()>& describe);

    // Control flow, for executors that then return Outcome::reschedule.

    /// The active lanes continue at `target`, the other lanes of the fragment behind the instruction.
    void diverge(const Decoded& instruction, std::uint32_t target);
    /// The active lanes have come to their end.
    void exit(const Decoded& instruction);
    /// Lanes that have left the running fragment (detach) meet others. If `group` and the lanes that already wait for
    /// the same make up `required`, those at this instruction are returned with `group`, and those at other ones, if
    /// these are allowed, go into the state `then`. Otherwise `group` begins to wait, and 0 is returned.
    LaneMask meet(const Decoded& instruction, LaneMask group, LaneMask required, Fragment waiting, bool any_place,
                  Wait then);
    /// The active lanes leave the running fragment, whose other lanes pass the instruction. Starts a rescheduling.
    void detach(const Decoded& instruction);
    /// Lets lanes continue behind an instruction.
    void resume(LaneMask lanes, std::uint32_t pc);
    /// Lanes wait at the CTA's barrier `number`.
    void wait_at_barrier(LaneMask lanes, std::uint32_t pc, std::uint32_t number);
    /// Barrier `number` is complete: its waiters continue.
    void release(std::uint32_t number, const BarrierReduction& reduction);
    /// Whether all lanes that have not exited execute an .aligned instruction together. If not, the active ones wait
    /// here for the rest, and the executor must return Outcome::reschedule.
    [[nodiscard]] bool converged(const Decoded& instruction);
    /// The active lanes wait at the instruction, to execute it again when they are woken.
    Outcome park(const Decoded& instruction, Wait wait, std::uint32_t key);
    /// Wakes fragments that wait so; returns whether there were any.
    bool wake(Wait wait, std::optional<std::uint32_t> key);
    bool time_out_waits();
    /// Whether the running fragment's wait has timed out; that is then forgotten.
    bool take_time_out() { return std::exchange(fragments_[current_].timed_out, false); }
    /// The lanes that have arrived at the cluster's barrier and not waited yet, and those that it is complete for.
    [[nodiscard]] LaneMask& cluster_arrived() { return cluster_arrived_; }
    [[nodiscard]] LaneMask& cluster_complete() { return cluster_complete_; }
    void complete_cluster_barrier();
    /// Executes for other lanes than the guard left, when several groups of lanes execute one after another.
    void set_active(LaneMask lanes) { active_ = lanes; }

  private:
    bool select();
    void merge();
    void add_fragment(Fragment fragment) { fragments_[count_++] = fragment; }
    void remove_fragment(unsigned index) { fragments_[index] = fragments_[--count_]; }

    Cta& cta_;
    const Program& program_;
    std::unique_ptr<RegistersInFlight> in_flight_;
    std::byte* registers_;
    LaneMask* written_;
    unsigned index_;

    LaneMask active_ = 0;
    LaneMask alive_ = 0;
    LaneMask lanes_ = 0;       ///< of the running fragment
    unsigned current_ = 0;     ///< the running fragment
    std::uint32_t limit_ = 0;  ///< the program counter from which on another fragment is behind it
    bool laggard_ = false;
    LaneMask cluster_arrived_ = 0;
    LaneMask cluster_complete_ = 0;
    unsigned count_ = 0;
    std::array<Fragment, kWarpSize> fragments_;
};

/// "lane 3", "lanes 0-15, 20".
std::string to_string_lanes(LaneMask lanes);

}  // namespace block_attention::simulator
