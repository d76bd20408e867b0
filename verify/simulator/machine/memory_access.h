#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

enum class AccessKind : std::uint8_t { load, store, atomic };

/// One memory access of a warp: where each lane's bytes are on the host.
struct WarpAccess {
    LaneMask lanes = 0;     ///< those of the active lanes whose access is possible
    bool uniform = false;   ///< a load of the same bytes by every active lane, which is possible; only data[0] is set
    bool shadowed = false;  ///< `shadow` is set: the memory remembers which bytes were written
    std::array<std::byte*, kWarpSize> data;    ///< for a load also those of other lanes, which read poison
    std::array<std::byte*, kWarpSize> shadow;  ///< null in a lane whose bytes were all written before
};

/// Finds the bytes that the active lanes access at `addresses` (inactive lanes hold the address of an active one).
/// `instruction` gives the space, or generic addressing, and the bytes per lane. Every fault is reported as a finding:
/// out of bounds, misaligned, read-only, and for a load or an atomic operation bytes that were never written, as far as
/// bit i of `needed` asks for byte i.
void find_bytes(Warp& warp, const Decoded& instruction, AccessKind kind,
                const std::array<std::uint64_t, kWarpSize>& addresses, std::uint32_t needed, WarpAccess& access);

/// Neighbouring bytes on the host.
struct HostBytes {
    std::byte* data = nullptr;
    std::byte* shadow = nullptr;  ///< null: all written
    bool read_only = false;
};

/// The `bytes` bytes at `address` in a state space, or at a generic one, that an asynchronous operation of `lane`
/// works on. Reports what is out of bounds or not aligned, as `what`, and then returns nothing.
struct AsyncOperand {
    std::string_view what;            ///< "the source of the copy"
    std::optional<ptx::Space> space;  ///< nothing: a generic address
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
};
std::optional<HostBytes> find_async(Warp& warp, const Decoded& instruction, unsigned lane, const AsyncOperand& operand);

}  // namespace block_attention::simulator
