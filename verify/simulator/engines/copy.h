#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "verify/simulator/layout/tensor_map.h"
#include "verify/simulator/machine/async_groups.h"
#include "verify/simulator/machine/issuer.h"

/// Asynchronous copies between shared memory and memory elsewhere: cp.async, cp.async.bulk, cp.async.bulk.tensor and
/// their reductions. A copy is cut into pieces, each of which reads its source, writes its destination and signals at
/// times of its own, drawn from the seed. What it will write is poison from the start.
namespace block_attention::simulator {

/// Neighbouring bytes of a copy.
struct CopyRun {
    std::byte* outer = nullptr;  ///< in global memory, or for a copy from CTA to CTA in shared memory; null: fill
    std::byte* outer_shadow = nullptr;  ///< null: all written
    std::uint32_t shared = 0;           ///< offset in shared memory
    std::uint32_t bytes = 0;
};

/// The mbarrier object, at the same offset in every target, whose transaction count the bytes complete.
struct CopyBarrier {
    std::uint32_t offset = 0;
};

/// A copy into the shared memory of one or more CTAs.
struct CopyToShared {
    Issuer issuer;
    std::vector<CopyRun> runs;
    std::uint16_t fill = 0;                           ///< repeated where a run has no outer bytes
    TensorMapType conversion = TensorMapType::uint8;  ///< see convert_loaded
    std::vector<Cta*> targets;                        ///< each gets the bytes at the same offsets
    std::optional<CopyBarrier> barrier;               ///< in each target
    std::vector<std::shared_ptr<AsyncGroup>> groups;  ///< a waiting thread's; each has been started
};

enum class ReductionOperation : std::uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// What a copy does to its destination's elements instead of overwriting them.
struct Reduction {
    ReductionOperation operation = ReductionOperation::add;
    TensorMapType type = TensorMapType::uint32;
};

/// Whether elements of a type can be reduced so.
bool is_reducible(const Reduction& reduction);

/// A copy out of a CTA's shared memory.
struct CopyFromShared {
    Issuer issuer;
    std::vector<CopyRun> runs;
    Cta* source = nullptr;
    std::optional<Reduction> reduction;
    std::shared_ptr<AsyncGroup> group;  ///< has been started; null if a barrier is signalled
    // From CTA to CTA:
    Cta* target = nullptr;               ///< whose memory the outer bytes are
    std::optional<CopyBarrier> barrier;  ///< of the target
};

/// Starts a copy. Its operands have been checked.
void start(CopyToShared copy);
void start(CopyFromShared copy);

}  // namespace block_attention::simulator
