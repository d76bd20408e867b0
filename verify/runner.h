#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reference/stage.h"
#include "verify/device/device.h"
#include "verify/result.h"
#include "verify/schedules.h"
#include "verify/tensors.h"

namespace block_attention {

/// A place to run stages at, with the name that reports give it: "host", "simulator", "cuda:0".
struct NamedDevice {
    std::string name;
    Device* device = nullptr;
    bool is_host = false;  ///< runs host stages, and only those
    /// Reports every access outside an allocation itself, with the instruction. Operands then get allocations of
    /// exactly their size; elsewhere guard zones around them take a stray write and show it after the run.
    bool checks_bounds = false;
};

/// The problem of one case: its tensors are filled.
struct LoadedCase {
    std::string name;
    const Tensors* tensors = nullptr;
};

/// What a caller may want to know during a run.
struct RunHooks {
    std::function<void(std::string_view stage, std::string_view device)> before;
    std::function<void(Result)> after;
    /// Called with the stage's output in the tensors, if the run didn't end early.
    std::function<void(std::string_view stage, std::string_view device, const Tensors& tensors)> output;
};

/// Runs every stage on every device that can run it. For each: poisons outputs and surroundings, uploads, runs,
/// downloads, checks guard zones, gaps, inputs and coverage, and compares O with the oracle (the oracle itself with the
/// witness) and with the bits of the first device that ran the stage. A device whose schedules can be chosen runs each
/// stage under all of them, until one finds something or gives other bits than the first; it must have been opened with
/// the first seed.
void run_case(const LoadedCase& loaded, std::span<const Stage* const> stages, std::span<const NamedDevice> devices,
              const RunHooks& hooks, const Schedules& schedules = {});

/// Why a stage doesn't serve the problem, or nothing.
std::optional<std::string> refusal_of(const Stage& stage, const Problem& problem);

}  // namespace block_attention
