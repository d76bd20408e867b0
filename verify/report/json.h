#pragma once
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "verify/result.h"

namespace block_attention {

/// What a report says about a device.
struct DeviceDescription {
    std::string name;         ///< "simulator"
    std::string description;  ///< "simulator sm_100a"
    int architecture = 0;     ///< 100; 0 for the host
    int multiprocessors = 0;
};

/// What a report says about a run as a whole.
struct RunDescription {
    std::string version;
    std::uint64_t seed = 0;  ///< of the data
    Schedules schedules;     ///< of the simulator
    std::vector<DeviceDescription> devices;
};

/// Writes the report as JSON. "format" is 1; it changes when a key changes its meaning. Numbers that JSON lacks are the
/// texts "inf", "-inf" and "nan".
void write_json(std::ostream& stream, const RunDescription& run, std::span<const Result> results);

}  // namespace block_attention
