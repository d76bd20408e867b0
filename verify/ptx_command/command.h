#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

namespace block_attention {

/// What `verify ptx` is asked for.
struct PtxOptions {
    std::string file{};
    std::optional<std::string> launch{};  ///< a spec; else the kernels are listed
    bool list = false;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> schedule_seed{};  ///< else the seed
    std::uint64_t schedules = 1;
    std::optional<std::string> architecture{};
    std::optional<std::string> json{};
};

/// Lists the kernels of a PTX file or launches one of them on the simulator. Returns the exit code. Throws UsageError
/// for whatever keeps it from being run.
int run_ptx_command(const PtxOptions& options, std::ostream& out, bool coloured);

}  // namespace block_attention
