#include "verify/simulator/machine/shared_place.h"

#include <fmt/format.h>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

std::byte* SharedPlace::data() const { return cta->shared_data() + (offset - kSharedBase); }
std::byte* SharedPlace::shadow() const { return cta->shared_shadow() + (offset - kSharedBase); }

std::optional<SharedPlace> find_shared(Warp& warp, const Decoded& instruction, unsigned lane, std::uint64_t address,
                                       const SharedOperand& operand) {
    const auto fail = [&](Rule rule, const std::string& why) {
        warp.report(rule, instruction, LaneMask{1} << lane,
                    [&] { return fmt::format("{} at {:#x} {}", operand.name, address, why); });
        return std::nullopt;
    };
    if (operand.generic) {
        if ((address & ~(kWindowBytes - 1)) != kSharedWindow) {
            return fail(Rule::out_of_bounds, "is not in shared memory, which its generic address must name");
        }
        address &= kWindowBytes - 1;
    }
    Cta& own = warp.cta();
    Cluster& cluster = own.cluster();
    const auto rank = static_cast<unsigned>(address >> kSharedRankShift);
    const auto offset = static_cast<std::uint32_t>(address & ((1U << kSharedRankShift) - 1));
    if (rank != own.rank()) {
        if (!operand.cluster) {
            return fail(
                Rule::out_of_bounds,
                fmt::format("is in the shared memory of CTA {} of the cluster, but must be in the CTA's own ({})", rank,
                            own.rank()));
        }
        if (rank >= cluster.size()) {
            return fail(Rule::out_of_bounds,
                        fmt::format("is in CTA {} of the cluster, which has {}", rank, cluster.size()));
        }
        if (cluster.cta(rank).finished()) {
            return fail(Rule::cluster, fmt::format("is in CTA {} of the cluster, which has exited", rank));
        }
    }
    if (offset % operand.alignment != 0) {
        return fail(Rule::misaligned, fmt::format("is not aligned to {} bytes", operand.alignment));
    }
    const std::uint64_t end = std::uint64_t{kSharedBase} + own.grid().shared_bytes;
    if (offset < kSharedBase || offset + operand.bytes > end) {
        return fail(Rule::out_of_bounds, fmt::format("has {} bytes, but shared memory reaches from {:#x} to {:#x}",
                                                     operand.bytes, kSharedBase, end));
    }
    return SharedPlace{&cluster.cta(rank), offset};
}

}  // namespace block_attention::simulator
