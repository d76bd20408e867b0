#pragma once
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>

#include "verify/ptx_command/launch_spec.h"
#include "verify/ptx_command/run.h"
#include "verify/schedules.h"

namespace block_attention {

/// What a report says beside the result.
struct LaunchDescription {
    std::string version;
    std::string ptx;  ///< path of the module
    std::uint64_t seed = 1;
    Schedules schedules;
};

/// The lines above the result: what runs where.
std::string launch_heading(const LaunchDescription& run, const LaunchSpec& spec);

/// What came of it: findings, schedules, agreement with what was expected.
std::string launch_report(const LaunchDescription& run, const LaunchSpec& spec, const LaunchResult& result);

/// "passed" or "FAILED: ...".
std::string launch_verdict(const LaunchResult& result, bool coloured);

/// The same as JSON. "format" is 1; it changes when a key changes its meaning.
void write_launch_json(std::ostream& stream, const LaunchDescription& run, const LaunchSpec& spec,
                       const LaunchResult& result);

}  // namespace block_attention
