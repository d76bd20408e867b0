#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

/// Bytes in the shared memory of a CTA of the cluster.
struct SharedPlace {
    Cta* cta = nullptr;
    std::uint32_t offset = 0;  ///< the address without the CTA's rank

    [[nodiscard]] std::byte* data() const;
    [[nodiscard]] std::byte* shadow() const;
};

/// What an operand asks of the place that its address names.
struct SharedOperand {
    std::string_view name;  ///< "the mbarrier object", for messages
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    bool generic = false;  ///< a generic address, which must be in the window of shared memory
    bool cluster = false;  ///< may be in another CTA of the cluster
};

/// The place of a lane's address; reports what is wrong with it and returns nothing if something is.
std::optional<SharedPlace> find_shared(Warp& warp, const Decoded& instruction, unsigned lane, std::uint64_t address,
                                       const SharedOperand& operand);

}  // namespace block_attention::simulator
