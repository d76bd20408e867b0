#pragma once
#include <cstdint>

/// Where the simulated machine puts its state spaces. Global memory is identity-mapped into generic addresses; the
/// other spaces appear there as windows (PTX ISA 6.4.1.1).
namespace block_attention::simulator {

/// Shared memory addresses have 32 bits: a CTA's own offset in bits 0 to 23, its rank in the cluster above. The first
/// kilobyte belongs to the system (measured on H200: the first static variable lies at 0x400).
inline constexpr std::uint32_t kSharedBase = 0x400;
inline constexpr std::uint32_t kSharedRankShift = 24;
inline constexpr std::uint32_t kMaxSharedBytes = 232448;       ///< per CTA, static and dynamic (H200, opt-in)
inline constexpr std::uint32_t kMaxStaticSharedBytes = 49152;  ///< what ptxas allows for static variables

/// Local addresses have 32 bits and are private to a thread.
inline constexpr std::uint32_t kLocalBase = 0x100;
inline constexpr std::uint32_t kMaxLocalBytes = 524288;  ///< per thread (CUDA C++ Programming Guide, 20.2)

/// Kernel parameters start at 0 of the param space.
inline constexpr std::uint32_t kMaxParameterBytes = 32764;  ///< sm_70 and later, since CUDA 12.1

inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kParameterWindow = 0x7C00'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x7D00'0000'0000;
inline constexpr std::uint64_t kSharedWindow = 0x7E00'0000'0000;

/// The first address of global memory, and the least unmapped gap between two allocations.
inline constexpr std::uint64_t kGlobalBase = 0x10'0000'0000;
inline constexpr std::uint64_t kGlobalGap = 0x100'0000;
inline constexpr std::uint64_t kGlobalAlignment = 256;

/// An address below this is a null pointer plus an index.
inline constexpr std::uint64_t kNullPage = 0x1'0000;

}  // namespace block_attention::simulator
