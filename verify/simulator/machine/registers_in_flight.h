#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "verify/simulator/isa/program.h"

namespace block_attention::simulator {

class Warp;

/// Registers of a warp that asynchronous operations will write: the accumulators of wgmma, the destinations of
/// tcgen05.ld. They count as never written from the operation's issue until a wait has covered it.
///
/// A compiler may move such a register to another one before the wait, which ptxas resolves by giving both the same
/// place. So a move is followed: what the operation writes then also reaches the other register.
class RegistersInFlight {
  public:
    explicit RegistersInFlight(Warp& warp) : warp_(warp) {}

    [[nodiscard]] bool empty() const { return registers_.empty(); }
    [[nodiscard]] bool contains(Slot slot) const { return registers_.contains(slot.index); }
    void clear();

    /// An operation that will write the register is issued. Lanes never written so far are poison until it does.
    void begin(Slot slot, const Decoded& instruction);
    /// The operation writes the register of every lane; `poison` are the lanes whose value rests on something that was
    /// never written, for the reason `why`.
    void deliver(Slot slot, const std::array<std::uint32_t, kWarpSize>& values, LaneMask poison,
                 const std::string& why);
    /// A wait has covered the operation.
    void end(Slot slot);
    /// `lanes` of `from`, some of which count as never written, have been moved to `to`.
    void moved(Slot from, Slot to, LaneMask lanes);

    /// Why a register counts as never written, to be added to a message; empty if nothing is known.
    [[nodiscard]] std::string explain(Slot slot) const;
    /// The lanes of a register in flight that hold poison.
    [[nodiscard]] LaneMask poison(Slot slot) const;

  private:
    struct Copy {
        Slot to;
        LaneMask lanes = 0;
    };
    struct State {
        const Decoded* instruction = nullptr;
        unsigned pending = 0;  ///< operations and moves from registers in flight that no wait has covered
        LaneMask lanes = 0;    ///< that they write
        LaneMask poison = 0;   ///< as far as operations have been carried out
        std::vector<Copy> copies;
    };

    void forget_copies_to(Slot slot);

    Warp& warp_;
    std::map<std::uint32_t, State> registers_;       ///< by Slot::index
    std::map<std::uint32_t, std::string> poisoned_;  ///< why, of registers whose operation is over
};

}  // namespace block_attention::simulator
