#pragma once
#include <cstdint>
#include <span>

#include "verify/simulator/engines/tensor_core_operand.h"
#include "verify/simulator/engines/tensor_core_plain.h"

/// Matrix products with the arithmetic of tensor cores, bit for bit that of tensor_core_step and many times as fast.
namespace block_attention::simulator {

/// How C enters a product.
struct Accumulation {
    AccumulatorType type = AccumulatorType::f32;
    /// Whether C is added: the scale-d of wgmma, the enable-input-d of tcgen05.mma.
    bool add_c = true;
    /// C is first multiplied by 2^-scale_exponent (scale-input-d, see scale_accumulator).
    unsigned scale_exponent = 0;
};

/// D = A * B + C for a tile of any shape, D in place of C: rows[m][n] holds C and then D. The value of an element is in
/// the low bits of its word; with f16 the upper half is ignored, and 0 in D.
///
/// The products are summed in steps of 16 elements (tf32: 8) that pass through the accumulator's format, as the
/// instructions do that are issued one after the other. A last step may be shorter.
///
/// A and B may change places, with rows of D's columns: terms are the same and a sum has no order. That is faster if A
/// has 16 rows and B 8 columns, for the work is done on kBlockColumns columns side by side.
///
/// rows: a pointer for each row of A, to B's count of words. Rows may lie anywhere, so that Tensor Memory can be the
/// target; a row whose pointer is null is left out (disable-output-lane).
///
/// Throws std::invalid_argument if A and B differ in type or depth, if there is not one pointer a row, or if the
/// accumulator is f16 and the operands are not.
void multiply(const PackedRows& a, const PackedColumns& b, const Accumulation& accumulation,
              std::span<std::uint32_t* const> rows);

}  // namespace block_attention::simulator
