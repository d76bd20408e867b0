#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/device/finding.h"
#include "verify/ptx_command/launch_spec.h"
#include "verify/schedules.h"
#include "verify/simulator/simulator.h"

namespace block_attention {

/// An output buffer that came out differently under another seed.
struct BufferDifference {
    std::size_t buffer = 0;
    std::uint64_t bytes = 0;  ///< that differ
    std::string first;        ///< "y[17]: 0x3f800000 instead of 0x40000000"
};

/// What came of a launch under all its schedules. Agreements and buffers are those of the first seed.
struct LaunchResult {
    std::uint64_t runs = 0;                       ///< seeds that were run
    std::optional<std::uint64_t> standing_out;    ///< the seed that found something or differs from the first
    std::vector<Finding> findings;                ///< of that seed
    bool died = false;                            ///< under that seed: a trap, a deadlock, too many steps
    std::optional<BufferDifference> difference;   ///< if it differs
    std::vector<Agreement> agreements;            ///< one for each expectation; none if the first run died
    std::vector<std::vector<std::byte>> buffers;  ///< what each holds afterwards; empty for those nobody asks for
    simulator::Statistics statistics;             ///< of the first seed

    [[nodiscard]] bool passed() const;
};

/// Refuses, as an UsageError, what the simulator cannot run: the target, the launch's shape, an instruction.
void check_launch(const LaunchSpec& spec, const std::shared_ptr<const simulator::ptx::Module>& module);

/// Runs the launch under each seed on a simulated GPU of its own, until one stands out. Compared are the buffers that
/// the spec writes or has expectations of, or all if there are none. `data_seed`: of the buffers' random content.
LaunchResult run_launch(const LaunchSpec& spec, const std::shared_ptr<const simulator::ptx::Module>& module,
                        std::uint64_t data_seed, const Schedules& schedules);

}  // namespace block_attention
