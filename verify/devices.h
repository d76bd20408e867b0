#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "verify/device/device.h"
#include "verify/runner.h"

namespace block_attention {

/// The devices that a run uses, in the order of the report.
struct DeviceSet {
    std::vector<std::unique_ptr<Device>> owned;
    std::vector<NamedDevice> devices;
    std::vector<std::string> notes;  ///< one line each, on what the machine lacks
};

struct DeviceRequest {
    std::vector<std::string> names;        ///< "host", "simulator", "cuda", "cuda:N", "all"; none: all
    std::string architecture = "sm_100a";  ///< of the simulated GPU
    std::uint64_t seed = 1;                ///< of the simulator's schedules
};

/// The architectures that the simulator can take, as nvcc calls them.
const std::vector<std::string>& simulated_architectures();

/// Opens the devices asked for. "all" takes what there is and notes what isn't; a name asks for that device. Throws
/// UsageError for an unknown name and for a GPU that this machine lacks.
DeviceSet open_devices(const DeviceRequest& request);

}  // namespace block_attention
