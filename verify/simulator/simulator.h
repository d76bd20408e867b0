#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/device/finding.h"
#include "verify/simulator/machine/global_memory.h"

/// A simulated GPU that executes PTX. It knows memory, modules and kernels, and nothing of what they compute.
namespace block_attention::simulator {

namespace ptx {
struct Module;
}

struct Options {
    int architecture = 90;  ///< 90 for sm_90
    bool specific = true;   ///< sm_90a: also runs the instructions of that architecture alone
    std::uint32_t multiprocessors = 132;
    std::uint64_t memory_bytes = std::uint64_t{141} << 30;
    std::uint64_t seed = 0;                    ///< of the schedule; the same seed gives the same run
    unsigned host_threads = 0;                 ///< 0: as many as the host has; the results don't depend on it
    std::uint64_t step_limit = 1'000'000'000;  ///< warp instructions of a CTA before it counts as endless
    std::size_t finding_limit = 100;           ///< distinct findings of a launch; further ones are dropped
};

/// A module that was loaded.
struct ModuleHandle {
    std::size_t index = 0;
};

/// A kernel launch. Parameters are the raw bytes of each, in the kernel's order.
struct LaunchRequest {
    ModuleHandle module;
    std::string_view kernel;
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<std::span<const std::byte>> parameters;
};

/// What has been executed since the simulator was made.
struct Statistics {
    std::uint64_t launches = 0;
    std::uint64_t ctas = 0;
    std::uint64_t warp_instructions = 0;
    std::uint64_t lane_instructions = 0;  ///< the same, times the lanes that ran together
};

/// Throws SimulatorError where the request is at fault, ptx::PtxError where the PTX is. What a kernel does wrong is no
/// exception but a finding. Not thread-safe.
class Simulator {
  public:
    explicit Simulator(const Options& options);
    ~Simulator();
    Simulator(const Simulator&) = delete;
    Simulator& operator=(const Simulator&) = delete;

    [[nodiscard]] const Options& options() const;
    /// "sm_90a".
    [[nodiscard]] std::string target() const;

    /// Global memory of so many bytes, aligned to 256 bytes, never written. The label names it in findings.
    std::uint64_t allocate(std::uint64_t bytes, std::string_view label);
    void free(std::uint64_t address);
    void write(std::uint64_t address, std::span<const std::byte> from);
    void read(std::uint64_t address, std::span<std::byte> to) const;
    /// Fills memory with a pattern that counts as never written.
    void poison(std::uint64_t address, std::uint64_t bytes, std::byte pattern);

    /// Reads a module and puts its variables into global memory. `path` names it in messages.
    ModuleHandle load(std::string ptx, std::string path);
    /// The same for a module that ptx::parse has read, and that other simulators may share.
    ModuleHandle load(std::shared_ptr<const ptx::Module> module);
    /// Names of the module's kernels.
    [[nodiscard]] std::vector<std::string_view> kernels(ModuleHandle module) const;
    /// Throws ptx::PtxError if the kernel uses anything that is not simulated.
    void check(ModuleHandle module, std::string_view kernel);

    /// Runs a kernel to its end. Returns false if it died: a trap, a deadlock, too many steps; take_findings says why.
    bool launch(const LaunchRequest& request);

    /// What was found in the launches since the last call, in their order.
    std::vector<Finding> take_findings();
    [[nodiscard]] const Statistics& statistics() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace block_attention::simulator
