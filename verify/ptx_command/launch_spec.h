#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/launch.h"
#include "verify/ptx_command/argument.h"
#include "verify/ptx_command/expectation.h"
#include "verify/ptx_command/target.h"
#include "verify/simulator/ptx/module.h"

namespace block_attention {

/// A file that a buffer is written to.
struct OutputFile {
    std::size_t buffer = 0;
    std::filesystem::path path;
};

/// A launch of one kernel, complete and checked against the kernel's parameters.
struct LaunchSpec {
    const simulator::ptx::Function* kernel = nullptr;  ///< in the module
    Target target;                                     ///< that is simulated
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<BufferSpec> buffers;
    std::vector<Field> arguments;  ///< one for each parameter
    std::vector<OutputFile> outputs;
    std::vector<Expectation> expectations;
};

/// Reads a launch spec for a kernel of the module, which must outlive it; docs/programs.md describes its keys. Files
/// are relative to the spec's folder. `architecture` overrides the spec's target. Throws UsageError that names the file
/// and the place in it.
LaunchSpec read_launch_spec(const std::filesystem::path& path, const simulator::ptx::Module& module,
                            const std::optional<std::string>& architecture);

/// The kernels of a module that have a body, in the file's order.
std::vector<const simulator::ptx::Function*> kernels_of(const simulator::ptx::Module& module);

}  // namespace block_attention
