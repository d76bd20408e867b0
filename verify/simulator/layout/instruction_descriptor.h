#pragma once
#include <cstdint>

#include "verify/simulator/layout/matrix_descriptor.h"
#include "verify/simulator/layout/verdict.h"

namespace block_attention::simulator {

/// The 32-bit instruction descriptor of tcgen05.mma with one CTA and kind f16, dense (PTX ISA 9.7.16.4.2 table 42, and
/// CUTLASS mma_sm100_desc). K is 16.
struct InstructionDescriptor {
    /// Element types, with the descriptor's codes.
    enum class Multiplicand : std::uint8_t { f16, bf16 };
    enum class Accumulator : std::uint8_t { f16, f32 };

    std::uint32_t m = 128;  ///< 64 or 128
    std::uint32_t n = 8;    ///< 8..256, a multiple of 8
    Accumulator d = Accumulator::f32;
    Multiplicand a = Multiplicand::f16;
    Multiplicand b = Multiplicand::f16;
    bool negate_a = false;
    bool negate_b = false;
    Major major_a = Major::k;  ///< MN-major: "transposed"
    Major major_b = Major::k;

    bool operator==(const InstructionDescriptor&) const = default;
};

/// The fields of a descriptor, if check_instruction_descriptor has no error.
InstructionDescriptor decode_instruction_descriptor(std::uint32_t bits);

/// Errors: reserved bits, sparsity, saturation and .ws fields, unknown types, M and N that the instruction lacks, an
/// f16 accumulator of bf16 multiplicands, an MN-major A in Tensor Memory. Warns of M = 128 with an odd multiple of 8
/// for N: the PTX ISA has it, CUTLASS not if A is in Tensor Memory, DeepGEMM not at all.
Verdict check_instruction_descriptor(std::uint32_t bits, bool a_in_tensor_memory);

std::uint32_t encode_instruction_descriptor(const InstructionDescriptor& descriptor);

}  // namespace block_attention::simulator
