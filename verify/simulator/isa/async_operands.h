#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/machine/shared_place.h"

/// Operands of asynchronous copies: up to three addresses, each with an offset of its own. Decoded::list holds the base
/// and the offset of each, then what else there is; bit `which` of Decoded::bytes says that the base has 64 bits.
namespace block_attention::simulator {

/// Collects the list.
class AsyncOperands {
  public:
    explicit AsyncOperands(Decoder& decoder) : decoder_(decoder) {}

    /// The next address, in brackets, alone or with a tensor's coordinates, which then follow it in `coordinates`.
    void add_address(const ptx::Operand& operand, std::optional<ptx::Space> space);
    void add(Slot slot) { list_.push_back(slot); }
    /// Puts the list into the result.
    void finish();

  private:
    Decoder& decoder_;
    std::vector<Slot> list_;
    unsigned addresses_ = 0;
    std::uint16_t wide_ = 0;
};

/// Address `which` of a lane.
std::uint64_t async_address(const Warp& warp, const Decoded& instruction, unsigned which, unsigned lane);

/// Reports bases that were never written.
void require_addresses(Warp& warp, const Decoded& instruction, unsigned count);

/// Takes the two state spaces of a copy, in their order: "shared::cluster", "shared::cta" or "global".
std::pair<std::string_view, std::string_view> take_copy_spaces(Decoder& decoder);

/// The CTAs that a 16-bit multicast mask names; reports those that the cluster lacks.
std::vector<Cta*> multicast_targets(Warp& warp, const Decoded& instruction, unsigned lane, std::uint32_t mask);

}  // namespace block_attention::simulator
