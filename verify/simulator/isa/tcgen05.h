#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/machine/warp.h"

/// What the instructions of tcgen05 have in common (PTX ISA 9.7.16).
namespace block_attention::simulator {

// Decoders of the files tcgen05_*.cpp. Those of a name, such as .mma, have been taken.

void decode_tcgen05_multiply(Decoder& decoder);
void decode_tcgen05_copy(Decoder& decoder);
void decode_tcgen05_shift(Decoder& decoder);
void decode_tcgen05_load(Decoder& decoder);
void decode_tcgen05_store(Decoder& decoder);
void decode_tcgen05_wait(Decoder& decoder, bool loads);

/// Takes .cta_group::1.
void take_cta_group(Decoder& decoder);
/// Takes .sync.aligned.
void take_aligned(Decoder& decoder);

/// An address in Tensor Memory, in brackets: a 32-bit register or integer, and a constant that is added to it.
struct TensorMemoryOperand {
    Slot base;
    std::uint32_t offset = 0;
};
TensorMemoryOperand tensor_memory_operand(Decoder& decoder, const ptx::Operand& operand);

/// Whether a whole warp executes the instruction. Reports one that lacks lanes.
bool whole_warp(Warp& warp, const Decoded& instruction);

/// Reports an operand on which the active lanes disagree, and returns that of the first of them.
template <typename Cell>
Cell uniform_operand(Warp& warp, const Decoded& instruction, const Cell* lanes, std::string_view name) {
    const unsigned first = warp.first_lane();
    for (unsigned lane = first; lane < kWarpSize; ++lane) {
        if ((warp.active() >> lane & 1) == 0 || lanes[lane] == lanes[first]) continue;
        warp.report(Rule::tensor_memory, instruction, LaneMask{1} << lane, [&] {
            return fmt::format("{} differs between the lanes of a warp: {:#x} in lane {}, {:#x} in lane {}", name,
                               lanes[first], first, lanes[lane], lane);
        });
        break;
    }
    return lanes[first];
}

}  // namespace block_attention::simulator
