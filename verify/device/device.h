#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "reference/launch.h"
#include "verify/device/finding.h"

namespace block_attention {

/// An address in a device's global memory.
using DevicePointer = std::uint64_t;

/// A device refused or failed: an allocation too large, a kernel the module lacks, a launch that died.
struct DeviceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct DeviceProperties {
    std::string name;      ///< "NVIDIA H200", or "simulator sm_90a"
    int architecture = 0;  ///< 90 for sm_90
    bool specific = true;  ///< runs code for that architecture alone as well: sm_90a
    int multiprocessors = 0;
    std::uint64_t memory_bytes = 0;
};

/// Why a device cannot run a module's kernels: one sentence that names the module's target and the device's. Nothing if
/// it can. Code for one architecture alone ("sm_100a") runs on no other.
std::optional<std::string> cannot_run(const DeviceProperties& device, const KernelModule& module);

/// A kernel parameter as the device gets it: pointers resolved, tensor maps encoded.
struct KernelParameter {
    std::vector<std::byte> bytes;
    std::size_t alignment = 1;
};

/// A launch with every argument resolved to this device's addresses.
struct DeviceLaunch {
    const KernelModule* module = nullptr;
    std::string kernel;
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<KernelParameter> parameters;
};

/// Somewhere a plan can run. One implementation drives a GPU, the other simulates one. Every call throws DeviceError
/// with a message that names what was asked for. Not thread-safe.
class Device {
  public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    [[nodiscard]] virtual const DeviceProperties& properties() const = 0;

    /// Memory of `bytes` bytes, aligned to 256, content undefined. `label` names it in findings.
    virtual DevicePointer allocate(std::uint64_t bytes, std::string_view label) = 0;
    virtual void free(DevicePointer pointer) = 0;
    virtual void copy_to_device(DevicePointer to, std::span<const std::byte> from) = 0;
    virtual void copy_to_host(std::span<std::byte> to, DevicePointer from) = 0;
    /// Fills memory with a byte that means "never written". A simulator also reports any kernel that reads it.
    virtual void poison(DevicePointer pointer, std::uint64_t bytes, std::byte pattern) = 0;

    /// The 128 opaque bytes of a tensor map (CUtensorMap) for an operand that starts at `base`.
    virtual std::array<std::byte, 128> encode(const TensorMapArgument& map, DevicePointer base) = 0;

    /// Starts a kernel. It runs after every earlier launch; its effects may be seen only after synchronize().
    virtual void launch(const DeviceLaunch& launch) = 0;
    /// Waits for every launch. Throws DeviceError if one died.
    virtual void synchronize() = 0;

    /// A device like this one when it was opened, whose kernels run under the schedule of another seed; null where the
    /// schedule can't be chosen, as on a GPU.
    [[nodiscard]] virtual std::unique_ptr<Device> with_schedule(std::uint64_t /*seed*/) const { return nullptr; }

    /// What was found in the kernels since the last call: always empty on a GPU.
    virtual std::vector<Finding> take_findings() = 0;
};

/// Allocates the plan's tables, resolves its arguments with the operands' addresses (indexed by Operand; 0 where the
/// problem has none), launches everything, waits, and frees the tables.
void run_plan(Device& device, const Plan& plan, const std::array<DevicePointer, kOperands>& operands);

}  // namespace block_attention
