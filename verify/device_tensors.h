#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "verify/device/device.h"
#include "verify/storage_check.h"
#include "verify/tensors.h"

namespace block_attention {

/// A device's address of every operand; 0 where the problem has none.
using Addresses = std::array<DevicePointer, kOperands>;

/// A copy of a problem's tensors on a device, made for one run and freed after it: inputs as on the host, outputs and
/// everything around the elements poisoned.
class DeviceTensors {
  public:
    /// On a device that checks bounds itself every operand gets an allocation of its exact size; else one with the
    /// guard zones. Throws DeviceError.
    DeviceTensors(Device& device, bool checks_bounds, const Tensors& tensors);
    DeviceTensors(const DeviceTensors&) = delete;
    DeviceTensors& operator=(const DeviceTensors&) = delete;
    ~DeviceTensors();

    /// Of the first elements.
    [[nodiscard]] Addresses addresses() const;

    /// Copies an output, with what surrounds it, into the host's tensors.
    void download_output(Operand operand) const;

    /// Compares an input with the host's, in pieces, so that no second copy of it is needed.
    [[nodiscard]] std::vector<StorageFault> check_input(Operand operand) const;

  private:
    [[nodiscard]] DevicePointer base(Operand operand) const;
    [[nodiscard]] DevicePointer first_element(Operand operand) const;
    [[nodiscard]] std::span<std::byte> host(Operand operand) const;
    void upload_input(Operand operand);
    void poison(DevicePointer begin, std::uint64_t bytes);
    void free() noexcept;

    Device& device_;
    const Tensors& tensors_;
    std::size_t guard_;                 ///< bytes of a guard zone on the device
    std::vector<DevicePointer> bases_;  ///< in order of the tensors' operands
};

}  // namespace block_attention
