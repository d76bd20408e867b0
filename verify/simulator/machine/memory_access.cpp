#include "verify/simulator/machine/memory_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cell.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

constexpr std::size_t kMaxAccessBytes = 32;

/// What a faulty load reads.
alignas(kMaxAccessBytes) std::array<std::uint64_t, kMaxAccessBytes / 8> poison_bytes{kPoison, kPoison, kPoison,
                                                                                     kPoison};

/// Neighbouring bytes of one state space that lanes may access.
struct Region {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::byte* data = nullptr;
    std::byte* shadow = nullptr;  ///< null: all written
    std::size_t lane_stride = 0;  ///< distance of the lanes' own copies: local memory
    bool read_only = false;
};

struct Place {
    ptx::Space space;
    std::uint64_t address;
};

/// What a generic address means.
Place resolve_generic(std::uint64_t address) {
    switch (address & ~(kWindowBytes - 1)) {
        case kSharedWindow:
            return {ptx::Space::shared, address & (kWindowBytes - 1)};
        case kLocalWindow:
            return {ptx::Space::local, address & (kWindowBytes - 1)};
        case kParameterWindow:
            return {ptx::Space::param, address & (kWindowBytes - 1)};
        default:
            return {ptx::Space::global, address};
    }
}

/// Whether an access reaches the shared memory of the cluster's CTA `rank`, which is not the warp's own.
bool reaches(const Warp& warp, const Decoded& instruction, unsigned rank) {
    Cluster& cluster = warp.cta().cluster();
    return (instruction.cluster || instruction.generic) && rank < cluster.size() && !cluster.cta(rank).finished();
}

std::optional<Region> region_at(Warp& warp, const Decoded& instruction, Place place) {
    Cta& cta = warp.cta();
    const Grid& grid = cta.grid();
    switch (place.space) {
        case ptx::Space::global:
        case ptx::Space::constant: {
            const Allocation*& allocation = cta.last_allocation(warp.index_of(instruction));
            if (allocation == nullptr || place.address - allocation->address >= allocation->bytes) {
                allocation = grid.memory->find(place.address);
                if (allocation == nullptr) return std::nullopt;
            }
            if (allocation->freed) return std::nullopt;
            return Region{
                allocation->address,  allocation->bytes, allocation->data.data(), allocation->shadow.data(), 0,
                allocation->read_only};
        }
        case ptx::Space::shared: {
            const auto rank = static_cast<unsigned>(place.address >> kSharedRankShift);
            if (rank != cta.rank() && !reaches(warp, instruction, rank)) return std::nullopt;
            Cta& owner = cta.cluster().cta(rank);
            return Region{(std::uint64_t{rank} << kSharedRankShift) + kSharedBase,
                          grid.shared_bytes,
                          owner.shared_data(),
                          owner.shared_shadow(),
                          0,
                          false};
        }
        case ptx::Space::local:
            return Region{kLocalBase,           warp.program().local_bytes,
                          cta.local_data(warp), cta.local_shadow(warp),
                          cta.local_stride(),   false};
        case ptx::Space::param:
            return Region{0, warp.program().parameter_bytes, grid.parameters.data(), nullptr, 0, true};
    }
    return std::nullopt;
}

std::string_view words(AccessKind kind) {
    switch (kind) {
        case AccessKind::load:
            return "a load";
        case AccessKind::store:
            return "a store";
        case AccessKind::atomic:
            return "an atomic operation";
    }
    return "an access";
}

/// Where an address of shared, local or parameter memory is with respect to the variables there.
std::string describe_variables(std::uint64_t address, const std::vector<PlacedVariable>& variables, std::uint64_t end,
                               std::string_view space) {
    const PlacedVariable* best = nullptr;
    for (const auto& variable : variables) {
        if (variable.address <= address && (best == nullptr || variable.address >= best->address)) best = &variable;
    }
    if (best == nullptr) return fmt::format("{} memory before its first variable", space);
    const std::uint64_t bytes = best->bytes != 0 ? best->bytes : end - best->address;
    const std::uint64_t offset = address - best->address;
    if (offset < bytes)
        return fmt::format("{} bytes into {} variable '{}' ({} bytes)", offset, space, best->name, bytes);
    return fmt::format("{} bytes past the end of {} variable '{}' ({} bytes)", offset - bytes, space, best->name,
                       bytes);
}

std::string describe(const Warp& warp, Place place) {
    const Grid& grid = warp.cta().grid();
    const Program& program = warp.program();
    switch (place.space) {
        case ptx::Space::global:
        case ptx::Space::constant:
            return grid.memory->describe(place.address);
        case ptx::Space::shared: {
            const std::string text = describe_variables(place.address % (1U << kSharedRankShift), program.shared,
                                                        kSharedBase + grid.shared_bytes, "shared");
            const auto rank = static_cast<unsigned>(place.address >> kSharedRankShift);
            if (rank == warp.cta().rank()) return text;
            Cluster& cluster = warp.cta().cluster();
            if (rank >= cluster.size()) {
                return text + fmt::format(" of CTA {}, while the cluster has {} CTAs", rank, cluster.size());
            }
            if (cluster.cta(rank).finished()) return text + fmt::format(" of CTA {}, which has exited", rank);
            return text +
                   fmt::format(" of CTA {} of the cluster, where only .shared::cluster and generic accesses reach",
                               rank);
        }
        case ptx::Space::local:
            return describe_variables(place.address, program.local, kLocalBase + program.local_bytes, "local");
        case ptx::Space::param:
            return describe_variables(place.address, program.parameters, program.parameter_bytes, "parameter");
    }
    return {};
}

/// "a load of 4 bytes at 0x1000000010, 16 bytes into 'q' (...)".
std::string describe(const Warp& warp, AccessKind kind, unsigned bytes, Place place) {
    return fmt::format("{} of {} bytes at {:#x}, {}", words(kind), bytes, place.address, describe(warp, place));
}

class Finder {
  public:
    Finder(Warp& warp, const Decoded& instruction, AccessKind kind, std::uint32_t needed, WarpAccess& access)
        : warp_(warp), instruction_(instruction), kind_(kind), needed_(needed), access_(access) {}

    /// All lanes at once, if they access the same region without a fault.
    bool find_together(const std::array<std::uint64_t, kWarpSize>& addresses);
    void find_one_by_one(const std::array<std::uint64_t, kWarpSize>& addresses);
    void check_written(const std::array<std::uint64_t, kWarpSize>& addresses);

  private:
    [[nodiscard]] Place place_of(std::uint64_t address) const {
        return instruction_.generic ? resolve_generic(address) : Place{instruction_.space, address};
    }
    bool find_lane(unsigned lane, std::uint64_t address);
    template <typename T>
    [[nodiscard]] bool all_written() const;

    Warp& warp_;
    const Decoded& instruction_;
    AccessKind kind_;
    std::uint32_t needed_;
    WarpAccess& access_;
};

bool Finder::find_together(const std::array<std::uint64_t, kWarpSize>& addresses) {
    const unsigned first = warp_.first_lane();
    const Place place = place_of(addresses[first]);
    const auto region = region_at(warp_, instruction_, place);
    const std::uint64_t bytes = instruction_.bytes;
    if (!region || region->bytes < bytes || (region->read_only && kind_ != AccessKind::load)) return false;

    // Generic addresses of one space differ from its own ones by the same distance in every lane.
    const std::uint64_t base = region->base + (addresses[first] - place.address);
    const std::uint64_t limit = region->bytes - bytes;
    std::uint64_t outside = 0;
    std::uint64_t low_bits = 0;
    std::uint64_t differences = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) differences |= addresses[lane] ^ addresses[0];
    if (differences == 0) {
        outside = addresses[0] - base > limit ? 1 : 0;
        low_bits = addresses[0];
    } else {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            outside |= addresses[lane] - base > limit ? 1 : 0;
            low_bits |= addresses[lane];
        }
    }
    if (outside != 0 || (low_bits & (bytes - 1)) != 0) return false;

    access_.lanes = warp_.active();
    access_.shadowed = region->shadow != nullptr;
    access_.uniform = kind_ == AccessKind::load && differences == 0 && region->lane_stride == 0 && !access_.shadowed;
    if (access_.uniform) {
        access_.data[0] = region->data + (addresses[0] - base);
        return true;
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const std::size_t offset = addresses[lane] - base + lane * region->lane_stride;
        access_.data[lane] = region->data + offset;
    }
    if (access_.shadowed) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            access_.shadow[lane] = region->shadow + (access_.data[lane] - region->data);
        }
    }
    return true;
}

void Finder::find_one_by_one(const std::array<std::uint64_t, kWarpSize>& addresses) {
    access_.lanes = 0;
    access_.uniform = false;
    access_.shadowed = true;
    access_.data.fill(reinterpret_cast<std::byte*>(poison_bytes.data()));
    access_.shadow.fill(nullptr);
    for (LaneMask left = warp_.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        if (find_lane(lane, addresses[lane])) access_.lanes |= LaneMask{1} << lane;
    }
}

bool Finder::find_lane(unsigned lane, std::uint64_t address) {
    const Place place = place_of(address);
    const unsigned bytes = instruction_.bytes;
    const LaneMask lane_bit = LaneMask{1} << lane;
    const auto region = region_at(warp_, instruction_, place);
    if (!region || place.address - region->base >= region->bytes || region->bytes < bytes ||
        place.address - region->base > region->bytes - bytes) {
        warp_.report(Rule::out_of_bounds, instruction_, lane_bit, [&] { return describe(warp_, kind_, bytes, place); });
        return false;
    }
    if (address % bytes != 0) {
        warp_.report(Rule::misaligned, instruction_, lane_bit, [&] {
            return describe(warp_, kind_, bytes, place) + fmt::format(", is not aligned to {} bytes", bytes);
        });
        return false;
    }
    if (region->read_only && kind_ != AccessKind::load) {
        warp_.report(Rule::read_only, instruction_, lane_bit,
                     [&] { return describe(warp_, kind_, bytes, place) + ", which kernels can only read"; });
        return false;
    }
    const std::size_t offset = place.address - region->base + lane * region->lane_stride;
    access_.data[lane] = region->data + offset;
    if (region->shadow != nullptr) access_.shadow[lane] = region->shadow + offset;
    return true;
}

/// Whether all bytes of all active lanes were written, for accesses of a whole number of cells.
template <typename T>
bool Finder::all_written() const {
    T all = kWritten<T>;
    for (LaneMask left = access_.lanes; left != 0; left &= left - 1) {
        std::byte* shadow = access_.shadow[static_cast<unsigned>(std::countr_zero(left))];
        if (shadow == nullptr) continue;
        for (unsigned byte = 0; byte < instruction_.bytes; byte += sizeof(T)) all &= load_cell<T>(shadow + byte);
    }
    return all == kWritten<T>;
}

void Finder::check_written(const std::array<std::uint64_t, kWarpSize>& addresses) {
    switch (instruction_.bytes) {
        case 1:
            if (all_written<std::uint8_t>()) return;
            break;
        case 2:
            if (all_written<std::uint16_t>()) return;
            break;
        case 4:
            if (all_written<std::uint32_t>()) return;
            break;
        default:
            if (all_written<std::uint64_t>()) return;
            break;
    }
    for (LaneMask left = access_.lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        std::byte* shadow = access_.shadow[lane];
        if (shadow == nullptr) continue;
        for (unsigned byte = 0; byte < instruction_.bytes; ++byte) {
            if ((needed_ >> byte & 1) == 0 || load_cell<std::uint8_t>(shadow + byte) != 0) continue;
            warp_.report(Rule::uninitialized_read, instruction_, LaneMask{1} << lane, [&] {
                return describe(warp_, kind_, instruction_.bytes, place_of(addresses[lane])) +
                       fmt::format(", reads byte {}, which was never written", byte);
            });
            break;
        }
    }
}

}  // namespace

void find_bytes(Warp& warp, const Decoded& instruction, AccessKind kind,
                const std::array<std::uint64_t, kWarpSize>& addresses, std::uint32_t needed, WarpAccess& access) {
    Finder finder(warp, instruction, kind, needed, access);
    if (!finder.find_together(addresses)) finder.find_one_by_one(addresses);
    if (access.shadowed && kind != AccessKind::store) finder.check_written(addresses);
}

std::optional<HostBytes> find_async(Warp& warp, const Decoded& instruction, unsigned lane,
                                    const AsyncOperand& operand) {
    const Place place = operand.space ? Place{*operand.space, operand.address} : resolve_generic(operand.address);
    const auto region = region_at(warp, instruction, place);
    const auto fail = [&](Rule rule, const std::string& why) {
        warp.report(rule, instruction, LaneMask{1} << lane, [&] {
            return fmt::format("{}, {} bytes at {:#x}, {}{}", operand.what, operand.bytes, place.address,
                               describe(warp, place), why);
        });
        return std::nullopt;
    };
    if (place.address % operand.alignment != 0) {
        return fail(Rule::misaligned, fmt::format(", is not aligned to {} bytes", operand.alignment));
    }
    const std::uint64_t offset = region ? place.address - region->base : 0;
    if (!region || offset >= region->bytes || operand.bytes > region->bytes - offset) {
        return fail(Rule::out_of_bounds, " is out of bounds");
    }
    const std::size_t at = offset + lane * region->lane_stride;
    return HostBytes{region->data + at, region->shadow == nullptr ? nullptr : region->shadow + at, region->read_only};
}

}  // namespace block_attention::simulator
