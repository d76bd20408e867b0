#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "verify/device/device.h"

namespace block_attention {

/// The GPU that is simulated, and how.
struct SimulatorDeviceOptions {
    int architecture = 100;     ///< 90 for sm_90
    bool specific = true;       ///< with the instructions of that architecture alone: sm_100a
    int multiprocessors = 0;    ///< 0: as many as the architecture's large GPU has (sm_90: 132, sm_100: 148)
    std::uint64_t seed = 1;     ///< of the schedules; the same seed gives the same run
    unsigned host_threads = 0;  ///< 0: as many as the host has; the results don't depend on it
    std::string source_root;    ///< findings name source files relative to this folder, where they lie in it
};

/// A simulated GPU, which runs the PTX of kernel modules. A launch that dies (trap, deadlock, step limit) makes the
/// next synchronize() throw; take_findings() says why. Throws DeviceError for options that no GPU has.
std::unique_ptr<Device> open_simulator_device(const SimulatorDeviceOptions& options);

}  // namespace block_attention
