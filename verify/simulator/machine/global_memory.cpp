#include "verify/simulator/machine/global_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

constexpr std::byte kYes{1};

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

AlignedBytes::AlignedBytes(std::size_t bytes)
    : data_(static_cast<std::byte*>(
          ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{kGlobalAlignment}))) {}

void AlignedBytes::Delete::operator()(std::byte* data) const {
    ::operator delete (data, std::align_val_t{kGlobalAlignment});
}

Allocation& GlobalMemory::allocate(std::uint64_t bytes, std::string label) {
    if (bytes > capacity_ - used_) {
        throw SimulatorError(
            fmt::format("cannot allocate {} bytes for '{}': {} of the simulated device's {} bytes are in use", bytes,
                        label, used_, capacity_));
    }
    auto allocation = std::make_unique<Allocation>();
    allocation->address = kGlobalBase;
    if (!allocations_.empty()) {
        const auto& last = *allocations_.back();
        allocation->address = round_up(last.address + last.bytes + kGlobalGap, kGlobalGap);
    }
    allocation->bytes = bytes;
    allocation->label = std::move(label);
    allocation->data = AlignedBytes(bytes);
    allocation->shadow = AlignedBytes(bytes);
    const std::uint64_t poison = kPoison;
    for (std::uint64_t offset = 0; offset < bytes; offset += sizeof poison) {
        std::memcpy(allocation->data.data() + offset, &poison, std::min<std::uint64_t>(sizeof poison, bytes - offset));
    }
    std::fill_n(allocation->shadow.data(), bytes, std::byte{0});
    used_ += bytes;
    return *allocations_.emplace_back(std::move(allocation));
}

void GlobalMemory::free(std::uint64_t address) {
    const Allocation* found = find(address);
    if (found == nullptr || found->address != address || found->freed) {
        throw SimulatorError(fmt::format("cannot free {:#x}: no buffer starts there", address));
    }
    Allocation& allocation = containing(address, 0, "free");
    allocation.freed = true;
    allocation.data = {};
    allocation.shadow = {};
    used_ -= allocation.bytes;
}

Allocation& GlobalMemory::containing(std::uint64_t address, std::uint64_t bytes, const char* purpose) const {
    const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                        [](std::uint64_t value, const auto& entry) { return value < entry->address; });
    if (after != allocations_.begin()) {
        Allocation& allocation = **std::prev(after);
        const std::uint64_t offset = address - allocation.address;
        if (!allocation.freed && offset <= allocation.bytes && bytes <= allocation.bytes - offset) return allocation;
    }
    throw SimulatorError(
        fmt::format("cannot {} {} bytes at {:#x}: the range is {}", purpose, bytes, address, describe(address)));
}

void GlobalMemory::write(std::uint64_t address, std::span<const std::byte> from) {
    if (from.empty()) return;
    Allocation& allocation = containing(address, from.size(), "write");
    const std::uint64_t offset = address - allocation.address;
    std::copy(from.begin(), from.end(), allocation.data.data() + offset);
    if (allocation.shadow.data() == nullptr) return;
    if (from.size() == allocation.bytes) {
        allocation.shadow = {};
    } else {
        std::fill_n(allocation.shadow.data() + offset, from.size(), kYes);
    }
}

void GlobalMemory::read(std::uint64_t address, std::span<std::byte> to) const {
    if (to.empty()) return;
    const Allocation& allocation = containing(address, to.size(), "read");
    std::copy_n(allocation.data.data() + (address - allocation.address), to.size(), to.begin());
}

void GlobalMemory::poison(std::uint64_t address, std::uint64_t bytes, std::byte pattern) {
    if (bytes == 0) return;
    Allocation& allocation = containing(address, bytes, "poison");
    const std::uint64_t offset = address - allocation.address;
    std::fill_n(allocation.data.data() + offset, bytes, pattern);
    if (allocation.shadow.data() == nullptr) {
        allocation.shadow = AlignedBytes(allocation.bytes);
        std::fill_n(allocation.shadow.data(), allocation.bytes, kYes);
    }
    std::fill_n(allocation.shadow.data() + offset, bytes, std::byte{0});
}

void GlobalMemory::drop_full_shadows() {
    for (const auto& allocation : allocations_) {
        const std::byte* shadow = allocation->shadow.data();
        if (shadow != nullptr && std::memchr(shadow, 0, allocation->bytes) == nullptr) allocation->shadow = {};
    }
}

const Allocation* GlobalMemory::find(std::uint64_t address) const {
    const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                        [](std::uint64_t value, const auto& entry) { return value < entry->address; });
    return after == allocations_.begin() ? nullptr : std::prev(after)->get();
}

std::string GlobalMemory::describe(std::uint64_t address) const {
    if (address < kNullPage)
        return address == 0 ? "a null pointer" : fmt::format("a null pointer plus {} bytes", address);
    const auto where = [](const Allocation& allocation) {
        return fmt::format("'{}' ({} bytes at {:#x}{})", allocation.label, allocation.bytes, allocation.address,
                           allocation.freed ? ", freed" : "");
    };
    const Allocation* below = find(address);
    const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                        [](std::uint64_t value, const auto& entry) { return value < entry->address; });
    const Allocation* above = after == allocations_.end() ? nullptr : after->get();
    if (below != nullptr && address - below->address < below->bytes) {
        return fmt::format("{} bytes into {}", address - below->address, where(*below));
    }
    const std::uint64_t past = below == nullptr ? UINT64_MAX : address - (below->address + below->bytes);
    if (above != nullptr && above->address - address < past) {
        return fmt::format("{} bytes before {}", above->address - address, where(*above));
    }
    if (below == nullptr) return "not near any buffer: none is allocated";
    return fmt::format("{} bytes past the end of {}", past, where(*below));
}

}  // namespace block_attention::simulator
