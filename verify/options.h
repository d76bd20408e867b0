#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "verify/ptx_command/command.h"

namespace block_attention {

/// What the command line asks for.
struct Options {
    std::vector<std::string> cases;              ///< names, globs or specifications; none: all built-in cases
    std::vector<std::string> stages;             ///< names or globs; none: all
    std::vector<std::string> devices;            ///< none: all
    std::uint64_t seed = 1;                      ///< of random data
    std::optional<std::uint64_t> schedule_seed;  ///< of the simulator's first schedule; else the seed
    std::uint64_t schedules = 1;                 ///< that every result in the simulator is run under
    std::string architecture = "sm_100a";
    std::optional<std::string> input;
    std::optional<std::int64_t> block;  ///< of the input
    std::optional<std::string> output;
    std::optional<std::string> json;
    std::optional<std::string> junit;
    bool list = false;
    bool verbose = false;
};

/// The exit code of a run that ended while its command line was read.
struct ExitCode {
    int value = 0;
};

/// Reads the command line. Prints help to `out` and messages on bad usage to `err`; both end the run.
std::variant<Options, PtxOptions, ExitCode> parse_options(int argc, const char* const* argv, std::ostream& out,
                                                          std::ostream& err);

}  // namespace block_attention
