#pragma once
#include <cstdint>
#include <string_view>

namespace block_attention::simulator {

/// What is wrong with an operation on an mbarrier object.
enum class MbarrierFault : std::uint8_t {
    none,
    // The kernel dies with cudaErrorLaunchFailure (measured on H200), a little later than the operation. Here the
    // object stays unchanged.
    arrive_past_zero,  ///< more arrivals than are pending, or any while only transactions are outstanding
    tx_operand,        ///< a transaction count of 2^20 or more in one operation
    tx_count_range,    ///< the running transaction count would leave -(2^20 - 1) .. 2^20 - 1
    // The PTX ISA makes it undefined; the hardware goes on. Here the operation is carried out.
    init_count,        ///< init with a count outside 1 .. 2^20 - 1: the low 20 bits are used
    tx_count_limit,    ///< arrive.expect_tx made the transaction count exactly 2^20: passes on H200
    completed,         ///< a .noComplete operation completed the phase
    pending_overflow,  ///< cp.async.mbarrier.arrive would count more than 2^20 - 1 arrivals as pending: not counted
};

/// Whether the hardware kills the kernel.
constexpr bool is_fatal(MbarrierFault fault) {
    return fault >= MbarrierFault::arrive_past_zero && fault <= MbarrierFault::tx_count_range;
}

/// The fault in a sentence without subject: "arrives more often than ...".
std::string_view describe(MbarrierFault fault);

/// The 64-bit mbarrier object in shared memory (PTX ISA 9.7.13.15), as a value: the bits are the simulator's own, since
/// the object is opaque. Each operation is atomic. A phase completes when no arrival is pending and the transaction
/// count is zero; every operation that changes either tests for it, expect_tx too (measured on H200).
///
/// mbarrier.inval has no function here: H200 leaves the object as it is, and later operations go on working on it,
/// although the PTX ISA makes them undefined. Nor can the bits tell a live object from data: who simulates must keep
/// track of both.
class Mbarrier {
  public:
    static constexpr std::uint32_t kMaxCount = (1U << 20) - 1;

    /// The object in the 8 bytes at an aligned address.
    explicit constexpr Mbarrier(std::uint64_t bits) : bits_(bits) {}
    /// mbarrier.init: phase 0, `count` arrivals expected and pending, transaction count 0. Works on any content.
    static Mbarrier initialised(std::uint32_t count);
    /// What init with `count` does wrong: nothing or init_count.
    static MbarrierFault check_init(std::uint32_t count);

    [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
    [[nodiscard]] constexpr std::uint32_t pending() const { return static_cast<std::uint32_t>(bits_) & kMaxCount; }
    [[nodiscard]] constexpr std::uint32_t expected() const {
        return static_cast<std::uint32_t>(bits_ >> kExpectedShift) & kMaxCount;
    }
    /// Bytes expected minus bytes completed.
    [[nodiscard]] constexpr std::int32_t tx_count() const {
        return static_cast<std::int32_t>(static_cast<std::int64_t>(bits_ << kTxUnusedBits) >> (64 - kTxBits));
    }
    /// Number of phases completed, modulo 4. The hardware tells only odd from even.
    [[nodiscard]] constexpr std::uint32_t phase() const { return static_cast<std::uint32_t>(bits_ >> kPhaseShift); }

    MbarrierFault expect_tx(std::uint32_t bytes);
    MbarrierFault complete_tx(std::uint32_t bytes);
    /// A count of 0 changes nothing, but tests for completion.
    MbarrierFault arrive(std::uint32_t count = 1);
    MbarrierFault arrive_no_complete(std::uint32_t count);
    /// Expects, then arrives once, as one operation: while only transactions are outstanding it dies like every arrive,
    /// even if `bytes` would have completed the phase (measured on H200).
    MbarrierFault arrive_expect_tx(std::uint32_t bytes);
    /// Also lowers the count that later phases expect. Down to 0: the next arrive dies.
    MbarrierFault arrive_drop(std::uint32_t count = 1);
    MbarrierFault arrive_drop_no_complete(std::uint32_t count);
    MbarrierFault arrive_drop_expect_tx(std::uint32_t bytes);
    /// The first half of cp.async.mbarrier.arrive without .noinc; the arrive follows when the copies are done.
    MbarrierFault add_pending();

    /// test_wait.parity: whether the phase of that parity is the preceding one; only the lowest bit counts. A phase
    /// further back or ahead looks like the preceding or the current one (measured on H200).
    [[nodiscard]] constexpr bool test_parity(std::uint32_t parity) const { return ((phase() ^ parity) & 1) != 0; }
    /// test_wait with the state that an arrive returned: the bits before that arrive. Parity decides here as well.
    [[nodiscard]] constexpr bool test_state(std::uint64_t state) const { return test_parity(Mbarrier(state).phase()); }
    /// Whether `state` is of neither the current nor the preceding phase, as far as two bits tell. Waiting for it is
    /// undefined (PTX ISA 9.7.13.15.16).
    [[nodiscard]] constexpr bool is_stale(std::uint64_t state) const {
        return ((phase() - Mbarrier(state).phase()) & 3) > 1;
    }
    /// mbarrier.pending_count: arrivals that were pending before the arrive that returned `state`. 2^20 if there were
    /// none (measured on H200).
    static constexpr std::uint32_t pending_count(std::uint64_t state) {
        const std::uint32_t pending = Mbarrier(state).pending();
        return pending == 0 ? kMaxCount + 1 : pending;
    }

    bool operator==(const Mbarrier&) const = default;

  private:
    // Bits 0-19 pending, 20-39 expected, 40-61 the transaction count in two's complement, 62-63 the phase.
    static constexpr unsigned kExpectedShift = 20;
    static constexpr unsigned kTxShift = 40;
    static constexpr unsigned kTxBits = 22;
    static constexpr unsigned kTxUnusedBits = 64 - kTxShift - kTxBits;
    static constexpr unsigned kPhaseShift = kTxShift + kTxBits;

    static std::uint64_t pack(std::uint32_t phase, std::uint32_t pending, std::uint32_t expected,
                              std::int32_t tx_count);
    void set(std::uint32_t pending, std::uint32_t expected, std::int32_t tx_count);

    std::uint64_t bits_;
};

}  // namespace block_attention::simulator
