#pragma once
#include <array>
#include <cstdint>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/warp.h"

/// What instructions on memory have in common.
namespace block_attention::simulator {

/// The most bytes that a lane accesses at once: .v8.b32.
inline constexpr unsigned kMaxAccessBytes = 32;

/// The address of every active lane: register `base` plus the instruction's immediate. Other lanes get an active
/// lane's.
std::array<std::uint64_t, kWarpSize> lane_addresses(Warp& warp, const Decoded& instruction, Slot base);

/// Takes .cta, .cluster, .gpu or .sys: one coherent memory serves them all.
void ignore_scope(Decoder& decoder);
/// Takes cache operators, eviction priorities and prefetch sizes.
void ignore_cache_hints(Decoder& decoder);

}  // namespace block_attention::simulator
