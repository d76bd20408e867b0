#include "verify/device_tensors.h"

#include <algorithm>

namespace block_attention {

DeviceTensors::DeviceTensors(Device& device, bool checks_bounds, const Tensors& tensors)
    : device_(device), tensors_(tensors), guard_(checks_bounds ? 0 : kGuardBytes) {
    try {
        for (const Operand operand : tensors.operands()) {
            const auto size = std::max<std::uint64_t>(1, host(operand).size());  // no device allocates nothing
            bases_.push_back(device.allocate(size, name_of(operand)));
        }
        for (const Operand operand : tensors.problem().inputs()) upload_input(operand);
        for (const Operand operand : tensors.problem().outputs()) poison(base(operand), host(operand).size());
    } catch (...) {
        free();
        throw;
    }
}

DeviceTensors::~DeviceTensors() { free(); }

Addresses DeviceTensors::addresses() const {
    Addresses addresses{};
    for (const Operand operand : tensors_.operands()) {
        addresses[static_cast<std::size_t>(operand)] = first_element(operand);
    }
    return addresses;
}

void DeviceTensors::download_output(Operand operand) const {
    tensors_.poison(operand);  // guard zones that the device's allocation doesn't have
    if (!host(operand).empty()) device_.copy_to_host(host(operand), base(operand));
}

std::vector<StorageFault> DeviceTensors::check_input(Operand operand) const {
    constexpr std::size_t kPiece = std::size_t{1} << 26;
    const std::size_t size = host(operand).size();
    const AlignedMemory scratch(std::min(kPiece, size));
    std::vector<StorageFault> faults;
    for (std::size_t begin = 0; begin < size; begin += kPiece) {
        const auto piece = scratch.bytes().first(std::min(kPiece, size - begin));
        device_.copy_to_host(piece, base(operand) + begin);
        merge(faults, block_attention::check_input(tensors_, operand, piece, kGuardBytes - guard_ + begin));
    }
    return faults;
}

DevicePointer DeviceTensors::base(Operand operand) const {
    const auto& operands = tensors_.operands();
    return bases_[static_cast<std::size_t>(std::find(operands.begin(), operands.end(), operand) - operands.begin())];
}

DevicePointer DeviceTensors::first_element(Operand operand) const {
    return base(operand) + tensors_.begin() - kGuardBytes + guard_;
}

/// What the device's allocation mirrors of the host's.
std::span<std::byte> DeviceTensors::host(Operand operand) const {
    const std::span<std::byte> all = tensors_.allocation(operand);
    return all.subspan(kGuardBytes - guard_, all.size() - 2 * (kGuardBytes - guard_));
}

/// Copies an input and marks what surrounds its elements as never written. Gaps below 16 bytes hold the pattern, but
/// aren't marked: a vector load may read along what lies between two elements that it needs.
void DeviceTensors::upload_input(Operand operand) {
    constexpr std::uint64_t kWidestLoad = 16;
    const std::span<const std::byte> source = host(operand);
    if (source.empty()) return;
    device_.copy_to_device(base(operand), source);
    poison(base(operand), first_element(operand) - base(operand));
    poison(base(operand) + source.size() - guard_, guard_);
    const auto size = static_cast<std::uint64_t>(size_of(tensors_.problem().view(operand).dtype));
    tensors_.footprint(operand).for_each_gap([&](ElementRange gap) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(gap.end - gap.begin) * size;
        const DevicePointer begin = first_element(operand) + static_cast<std::uint64_t>(gap.begin) * size;
        if (bytes >= kWidestLoad) poison(begin, bytes);
    });
}

void DeviceTensors::poison(DevicePointer begin, std::uint64_t bytes) {
    if (bytes > 0) device_.poison(begin, bytes, kPoison);
}

void DeviceTensors::free() noexcept {
    for (const DevicePointer allocation : bases_) {
        try {
            device_.free(allocation);
        } catch (const DeviceError&) {  // a device that died has said so before
            continue;
        }
    }
}

}  // namespace block_attention
