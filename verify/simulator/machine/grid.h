#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "verify/simulator/machine/cta.h"

namespace block_attention::simulator {

/// What came of a launch.
struct GridResult {
    bool completed = true;  ///< no cluster died
    std::vector<Finding> findings;
    std::uint64_t warp_instructions = 0;
    std::uint64_t lane_instructions = 0;
};

/// Runs every cluster of a grid, each on one of `host_threads` threads (0: as many as the host has). When one dies,
/// clusters with a higher number are not started or don't count, so that the findings don't depend on the number of
/// threads.
GridResult run_grid(const Grid& grid, unsigned host_threads, std::size_t finding_limit);

}  // namespace block_attention::simulator
