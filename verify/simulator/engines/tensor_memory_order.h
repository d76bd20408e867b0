#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verify/simulator/layout/tensor_memory.h"
#include "verify/simulator/machine/issuer.h"

namespace block_attention::simulator {

/// Lanes 16 i .. 16 i + 15 of Tensor Memory for each bit i of `sixteens`, columns first .. end - 1.
struct TensorMemoryRegion {
    std::uint32_t sixteens = 0;
    std::uint32_t first = 0;
    std::uint32_t end = 0;

    [[nodiscard]] bool overlaps(const TensorMemoryRegion& other) const {
        return (sixteens & other.sixteens) != 0 && first < other.end && other.first < end;
    }
};

enum class Tcgen05Kind : std::uint8_t { multiply, copy, shift, load, store };

/// Of a warp, and not of one of its threads.
constexpr bool is_collective(Tcgen05Kind kind) { return kind == Tcgen05Kind::load || kind == Tcgen05Kind::store; }

/// An asynchronous operation's accesses to Tensor Memory.
struct TensorMemoryAccess {
    Issuer issuer;
    Tcgen05Kind kind = Tcgen05Kind::multiply;
    // Of a product:
    TensorMemoryAddress accumulator;
    std::uint32_t m = 0;
    std::uint32_t n = 0;
};

/// What orders the accesses of a CTA to its Tensor Memory (PTX ISA 9.7.16.6): whether the recipe of commits, waits and
/// fences lies between two of them that conflict. It looks at what threads have executed, not at when operations run.
/// That the threads really met in between, and in that order, it takes for granted: if not, the operations' times show
/// it.
class TensorMemoryOrder {
  public:
    explicit TensorMemoryOrder(std::size_t warps) { clear(warps); }
    void clear(std::size_t warps);

    /// Records an access, and says what is missing before it: an empty string, or a sentence without subject.
    std::string access(const TensorMemoryAccess& access, std::span<const TensorMemoryRegion> reads,
                       std::span<const TensorMemoryRegion> writes);
    /// Columns have been allocated: what was there before doesn't matter.
    void forget(std::uint32_t column, std::uint32_t columns);

    /// A thread has executed tcgen05.commit.
    void commit(const Warp& warp, unsigned lane);
    /// A warp has passed tcgen05.wait, of loads or of stores.
    void wait(const Warp& warp, Tcgen05Kind kind);
    void fence_before(const Warp& warp, LaneMask lanes);
    void fence_after(const Warp& warp, LaneMask lanes);

    /// Whether two operations that conflict keep the order of their issue, because the ISA says so of this pair and
    /// they are of one thread, or fences connect their threads.
    [[nodiscard]] bool pipelined(const TensorMemoryAccess& first, std::uint64_t first_time,
                                 const TensorMemoryAccess& second) const;
    /// The number of the last event.
    [[nodiscard]] std::uint64_t now() const { return now_; }

  private:
    using Times = std::vector<std::uint64_t>;
    /// Times at which an actor made its accesses so far known to others. One that follows another without an access in
    /// between is left out.
    struct Actor {
        std::uint64_t last_access = 0;
        Times commits;  ///< of a thread
        Times befores;  ///< tcgen05.fence::before_thread_sync; a commit includes it
    };
    struct WarpActor {
        std::array<std::uint64_t, 2> last_access{};  ///< of loads and stores
        std::array<Times, 2> waits;
        Times befores;
        std::uint64_t last_wait = 0;
    };
    struct Entry {
        TensorMemoryAccess access;
        std::uint64_t time = 0;
    };
    /// Numbers of entries, 0 for none.
    struct Cell {
        std::uint32_t writer = 0;
        std::uint32_t reader = 0;
    };
    static constexpr std::uint32_t kSixteens = kTensorMemoryLanes / 16;

    [[nodiscard]] std::string missing_between(const Entry& first, const TensorMemoryAccess& second) const;
    [[nodiscard]] std::string describe(const Entry& first, bool first_writes, bool second_writes,
                                       const std::string& missing) const;
    [[nodiscard]] std::uint64_t last_fence_after(const TensorMemoryAccess& access) const;
    template <typename Visit>
    void for_each_cell(std::span<const TensorMemoryRegion> regions, Visit visit);

    std::uint64_t now_ = 0;
    std::vector<Actor> threads_;
    std::vector<WarpActor> warps_;
    std::vector<std::uint64_t> afters_;  ///< by thread: its last tcgen05.fence::after_thread_sync
    std::vector<Entry> entries_;
    std::vector<Cell> cells_;  ///< [sixteen][column]
};

}  // namespace block_attention::simulator
