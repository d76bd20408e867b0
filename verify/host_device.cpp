#include "verify/host_device.h"

#include <fmt/core.h>

#include <cstring>
#include <new>
#include <utility>

namespace block_attention {
namespace {

std::byte* host_pointer(DevicePointer pointer) {
    return reinterpret_cast<std::byte*>(pointer);  // NOLINT(performance-no-int-to-ptr): the address came from a pointer
}

}  // namespace

DevicePointer HostDevice::allocate(std::uint64_t bytes, std::string_view label) {
    try {
        AlignedMemory memory(bytes);
        const auto address = reinterpret_cast<DevicePointer>(memory.bytes().data());
        memory_.emplace(address, std::move(memory));
        return address;
    } catch (const std::bad_alloc&) {
        throw DeviceError(fmt::format("the host has no {} bytes left for {}", bytes, label));
    }
}

void HostDevice::free(DevicePointer pointer) {
    if (memory_.erase(pointer) == 0) throw DeviceError(fmt::format("{:#x} is no allocation of the host", pointer));
}

void HostDevice::copy_to_device(DevicePointer to, std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(host_pointer(to), from.data(), from.size());
}

void HostDevice::copy_to_host(std::span<std::byte> to, DevicePointer from) {
    if (!to.empty()) std::memcpy(to.data(), host_pointer(from), to.size());
}

void HostDevice::poison(DevicePointer pointer, std::uint64_t bytes, std::byte pattern) {
    std::memset(host_pointer(pointer), static_cast<int>(pattern), bytes);
}

std::array<std::byte, 128> HostDevice::encode(const TensorMapArgument&, DevicePointer) {
    throw DeviceError("the host has no tensor maps");
}

void HostDevice::launch(const DeviceLaunch& launch) {
    throw DeviceError(fmt::format("the host cannot launch the kernel {}", launch.kernel));
}

}  // namespace block_attention
