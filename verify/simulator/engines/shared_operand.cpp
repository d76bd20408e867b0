#include "verify/simulator/engines/shared_operand.h"

#include <fmt/format.h>

#include <cstring>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr std::array<std::uint64_t, 2> kPoisonChunk{kPoison, kPoison};
constexpr std::uint64_t kAllWritten = 0x0101010101010101;

}  // namespace

void MatrixOperand::gather(const MatrixDescriptor& descriptor, Major major, std::uint32_t first, std::uint32_t extent,
                           std::uint16_t* packed) {
    const std::uint32_t elements = major == Major::k ? 1 : 8;
    gather_part(
        descriptor, major, first, extent,
        [&](std::uint32_t address, std::uint32_t mn) { return read(address, mn, elements); }, packed);
}

const std::byte* MatrixOperand::read(std::uint32_t address, std::uint32_t mn, std::uint32_t count) {
    const auto miss = [&] {
        for (std::uint32_t i = 0; i < count; ++i) missing_[mn + i] = true;
        if (!first_missing_) first_missing_ = address;
    };
    Cta& cta = issuer_.cta();
    const std::uint32_t end = kSharedBase + cta.grid().shared_bytes;
    if (address < kSharedBase || address > end - kChunkBytes) {
        issuer_.report(Rule::out_of_bounds, [&] {
            return fmt::format(
                "operand {} reaches {} bytes at {:#x}, but shared memory reaches from {:#x} to {:#x}; check the "
                "descriptor's start address, its offsets and its swizzle mode",
                name_, kChunkBytes, address, kSharedBase, end);
        });
        miss();
        return reinterpret_cast<const std::byte*>(kPoisonChunk.data());
    }
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    const std::byte* shadow = cta.shared_shadow() + (address - kSharedBase);
    std::memcpy(&low, shadow, sizeof low);
    std::memcpy(&high, shadow + sizeof low, sizeof high);
    if ((low & high) != kAllWritten) miss();
    return cta.shared_data() + (address - kSharedBase);
}

std::string MatrixOperand::explain() const {
    if (!first_missing_) return {};
    const auto pc = issuer_.warp->index_of(*issuer_.instruction);
    return fmt::format(
        "it rests on the instruction of {}, whose operand {} was not there when it was read: the shared memory at "
        "{:#x} was never written, or has yet to arrive",
        place_text(issuer_.warp->program(), pc), name_, *first_missing_);
}

}  // namespace block_attention::simulator
