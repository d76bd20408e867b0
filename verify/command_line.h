#pragma once
#include <functional>
#include <ostream>
#include <span>

#include "reference/stage.h"
#include "verify/devices.h"

namespace block_attention {

inline constexpr int kPassed = 0;
inline constexpr int kFailed = 1;    ///< a wrong result or a finding
inline constexpr int kBadUsage = 2;  ///< nothing could be run as asked

inline constexpr const char* kVersion = BLOCK_ATTENTION_VERSION;

/// What the program stands in: tests replace it.
struct Environment {
    std::ostream& out;
    std::ostream& err;
    bool out_is_coloured = false;  ///< a terminal whose user wants colour
    bool err_is_terminal = false;
    std::span<const Stage* const> stages;
    std::function<DeviceSet(const DeviceRequest&)> open_devices;
};

/// The whole program: reads the command line, runs, reports. Returns the exit code.
int run_command_line(int argc, const char* const* argv, const Environment& environment);

}  // namespace block_attention
