#pragma once
#include <map>
#include <string>

#include "verify/device/device.h"
#include "verify/tensors.h"

namespace block_attention {

/// The host seen as a device: its memory is host memory and its addresses are the host's, so a host stage works on a
/// copy of the tensors that is checked like a GPU's. It launches no kernels.
class HostDevice : public Device {
  public:
    [[nodiscard]] const DeviceProperties& properties() const override { return properties_; }
    DevicePointer allocate(std::uint64_t bytes, std::string_view label) override;
    void free(DevicePointer pointer) override;
    void copy_to_device(DevicePointer to, std::span<const std::byte> from) override;
    void copy_to_host(std::span<std::byte> to, DevicePointer from) override;
    void poison(DevicePointer pointer, std::uint64_t bytes, std::byte pattern) override;
    std::array<std::byte, 128> encode(const TensorMapArgument& map, DevicePointer base) override;
    void launch(const DeviceLaunch& launch) override;
    void synchronize() override {}
    std::vector<Finding> take_findings() override { return {}; }

  private:
    DeviceProperties properties_{.name = "host"};
    std::map<DevicePointer, AlignedMemory> memory_;
};

}  // namespace block_attention
