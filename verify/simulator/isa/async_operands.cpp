#include "verify/simulator/isa/async_operands.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

void AsyncOperands::add_address(const ptx::Operand& operand, std::optional<ptx::Space> space) {
    Decoded& result = decoder_.result;
    result.flags = 0;
    decoder_.address(operand, space, 1);
    if ((result.flags & kWideAddress) != 0) wide_ = static_cast<std::uint16_t>(wide_ | 1U << addresses_);
    ++addresses_;
    add(result.slots[1]);
    add(decoder_.builder().constant(result.immediate, 64));
    result.flags = 0;
}

void AsyncOperands::finish() {
    decoder_.result.list = decoder_.builder().keep(list_);
    decoder_.result.bytes = wide_;
}

std::uint64_t async_address(const Warp& warp, const Decoded& instruction, unsigned which, unsigned lane) {
    const Slot base = instruction.list[2 * which];
    const std::uint64_t offset = warp.lanes_of<std::uint64_t>(instruction.list[2 * which + 1])[lane];
    if ((instruction.bytes >> which & 1) != 0) return warp.lanes_of<std::uint64_t>(base)[lane] + offset;
    return (warp.lanes_of<std::uint32_t>(base)[lane] + offset) & std::numeric_limits<std::uint32_t>::max();
}

void require_addresses(Warp& warp, const Decoded& instruction, unsigned count) {
    for (unsigned which = 0; which < count; ++which) warp.require(instruction, instruction.list[2 * which]);
}

std::pair<std::string_view, std::string_view> take_copy_spaces(Decoder& decoder) {
    std::vector<std::string_view> spaces;
    for (const auto modifier : decoder.instruction().modifiers) {
        if (modifier == "shared::cluster" || modifier == "shared::cta" || modifier == "global") {
            spaces.push_back(modifier);
        }
    }
    if (spaces.size() != 2) {
        decoder.refuse(
            "it takes two state spaces, of the destination and of the source: .shared::cta, "
            ".shared::cluster or .global");
    }
    decoder.take(spaces[0]);
    decoder.take(spaces[1]);
    return {spaces[0], spaces[1]};
}

std::vector<Cta*> multicast_targets(Warp& warp, const Decoded& instruction, unsigned lane, std::uint32_t mask) {
    Cluster& cluster = warp.cta().cluster();
    std::vector<Cta*> targets;
    for (unsigned rank = 0; rank < 16; ++rank) {
        if ((mask >> rank & 1) == 0) continue;
        if (rank < cluster.size()) {
            targets.push_back(&cluster.cta(rank));
            continue;
        }
        warp.report(Rule::cluster, instruction, LaneMask{1} << lane, [&] {
            return fmt::format("the mask {:#06x} names CTA {} of the cluster, which has {}", mask, rank,
                               cluster.size());
        });
    }
    return targets;
}

}  // namespace block_attention::simulator
