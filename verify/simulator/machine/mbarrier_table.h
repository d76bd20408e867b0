#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "verify/simulator/layout/mbarrier.h"

namespace block_attention::simulator {

enum class MbarrierOperation : std::uint8_t {
    expect_tx,
    complete_tx,
    arrive,
    arrive_no_complete,
    arrive_expect_tx,
    arrive_drop,
    arrive_drop_no_complete,
    arrive_drop_expect_tx,
    add_pending,
};

/// What came of an operation on an mbarrier object.
struct MbarrierOutcome {
    std::uint64_t state = 0;  ///< before the operation: the token that an arrive returns
    bool completed = false;   ///< the phase
    bool fatal = false;       ///< the hardware would end the kernel
    std::string fault{};      ///< what is wrong, a sentence without subject; empty if nothing is
};

/// The mbarrier objects in a CTA's shared memory. Their bits lie in that memory; this remembers which of its bytes are
/// such objects, and what they should hold, so that an ordinary store over one does not go unnoticed.
class MbarrierTable {
  public:
    /// `shared` is the CTA's shared memory and `shadow` what remembers the bytes written, from offset `base` on.
    MbarrierTable(std::byte* shared, std::byte* shadow, std::uint32_t base)
        : shared_(shared), shadow_(shadow), base_(base) {}

    void clear() { live_.clear(); }
    /// `offset` is aligned and inside the memory, here and below. Returns what is wrong: a live object, a bad count.
    std::string initialise(std::uint32_t offset, std::uint32_t count);
    /// Returns what is wrong: no object there.
    std::string invalidate(std::uint32_t offset);
    MbarrierOutcome operate(std::uint32_t offset, MbarrierOperation operation, std::uint32_t operand);
    /// The object, or what is wrong with using it.
    [[nodiscard]] std::optional<Mbarrier> find(std::uint32_t offset, std::string& fault) const;
    /// "pending arrivals 1 of 2, 4096 bytes of transactions outstanding, 3 phases completed (modulo 4)".
    [[nodiscard]] std::string describe(std::uint32_t offset) const;

  private:
    [[nodiscard]] std::uint64_t load(std::uint32_t offset) const;
    void store(std::uint32_t offset, std::uint64_t bits);

    std::byte* shared_;
    std::byte* shadow_;
    std::uint32_t base_;
    std::map<std::uint32_t, std::uint64_t> live_;  ///< bits by offset
};

}  // namespace block_attention::simulator
