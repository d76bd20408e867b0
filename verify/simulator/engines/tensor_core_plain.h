#pragma once
#include <cstdint>
#include <span>

/// The arithmetic of tensor cores, one output element at a time: the definition that the fast version is tested
/// against.
///
/// A step, D = sum over k of a[k] * b[k] + C, is what one instruction of the least depth does to one output. Its depth
/// is 16 for f16 and bf16, 8 for tf32; shorter instructions (mma.m16n8k8 of f16 and bf16, mma.m16n8k4 of tf32) are a
/// step with zeros for the rest. Deeper products chain steps through C, so each step rounds.
///
/// 1. A term is an exact product, or C. The exponent of a product is the sum of the exponents of its factors: its
///    significand, in [1, 4), is not normalised. A subnormal number has the least exponent of its format. A term that
///    is zero has no exponent.
/// 2. E is the largest exponent of the terms, but no less than the least exponent of the accumulator's format minus 7:
///    -133 for f32, -21 for f16. Every term is truncated toward zero to a multiple of 2^(E - 25).
/// 3. The truncated terms are summed exactly.
/// 4. The sum becomes f32 by truncation toward zero, or f16 by rounding to nearest even. Subnormal results are kept.
///    What is too large becomes an infinity of its sign. Every zero is +0.
/// 5. A NaN among the inputs, infinity * 0 and infinity - infinity give the NaN 0x7FFFFFFF (f16: 0x7FFF). Otherwise an
///    infinity among the inputs is the result.
///
/// Measured on H200, bit for bit: mma.sync and wgmma with f16 and bf16 operands and f32 accumulators, with f16 operands
/// and f16 accumulators, and with tf32 operands and f32 accumulators. For tcgen05.mma, which no one has measured, the
/// same rules rest on the published simulator MMA-Sim (arXiv 2511.10909); the floor of E there is a presumption.
namespace block_attention::simulator {

/// Formats of the elements of A and B. Of a tf32 the low 13 bits are ignored, also in a NaN: one that has payload only
/// there is an infinity (measured on H200).
enum class OperandType : std::uint8_t { f16, bf16, tf32 };

/// Formats of C and D. f16 goes with operands of f16 only. In the order of the codes of tcgen05's instruction
/// descriptor, as the operand types are.
enum class AccumulatorType : std::uint8_t { f16, f32 };

/// One step for one output. `a` and `b` hold equally many elements, each a bit pattern in the low bits of its word; so
/// are `c` and the result.
std::uint32_t tensor_core_step(OperandType operands, AccumulatorType accumulator, std::span<const std::uint32_t> a,
                               std::span<const std::uint32_t> b, std::uint32_t c);

struct ScaledAccumulator {
    std::uint32_t bits = 0;
    bool exact = true;
};

/// `bits` * 2^-exponent, the scale-input-d of tcgen05.mma (PTX ISA 9.7.16.10.9.1). Neither the ISA nor a measurement
/// tells how a result is rounded that becomes subnormal: here as the result of a step, and `exact` says that bits were
/// lost. A zero becomes +0, a NaN the canonical one.
ScaledAccumulator scale_accumulator(AccumulatorType accumulator, std::uint32_t bits, unsigned exponent);

}  // namespace block_attention::simulator
