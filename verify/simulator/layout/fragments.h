#pragma once
#include <cstdint>

/// Which element of a matrix a lane's register holds, for the matrix instructions that work on registers. Elements of
/// 16 bits come in pairs: element 2 r is the low half of register r, 2 r + 1 the high half. `lane` is 0..31, `warp` the
/// warp's number in its warpgroup, 0..3. Every map is one-to-one.
namespace block_attention::simulator {

struct MatrixPosition {
    std::uint32_t row = 0;
    std::uint32_t col = 0;

    bool operator==(const MatrixPosition&) const = default;
};

/// A of mma.sync m16n8k16 (element 0..7) and m16n8k8 (0..3), f16 and bf16: row in 0..15, column = k.
/// PTX ISA 9.7.14.5.7-8.
constexpr MatrixPosition mma_a(std::uint32_t lane, std::uint32_t element) {
    return {lane / 4 + 8 * (element / 2 % 2), 2 * (lane % 4) + element % 2 + 8 * (element / 4)};
}

/// B of m16n8k16 (element 0..3) and m16n8k8 (0..1), f16 and bf16: row = k, column in 0..7.
constexpr MatrixPosition mma_b(std::uint32_t lane, std::uint32_t element) {
    return {2 * (lane % 4) + element % 2 + 8 * (element / 2), lane / 4};
}

/// C and D of m16n8k16 and m16n8k8, element 0..3: one f32 register each, or two f16 registers.
constexpr MatrixPosition mma_c(std::uint32_t lane, std::uint32_t element) {
    return {lane / 4 + 8 * (element / 2), 2 * (lane % 4) + element % 2};
}

/// A of m16n8k8 tf32, register 0..3. PTX ISA 9.7.14.5.7.
constexpr MatrixPosition mma_a_tf32(std::uint32_t lane, std::uint32_t element) {
    return {lane / 4 + 8 * (element % 2), lane % 4 + 4 * (element / 2)};
}

/// B of m16n8k8 tf32, register 0..1.
constexpr MatrixPosition mma_b_tf32(std::uint32_t lane, std::uint32_t element) {
    return {lane % 4 + 4 * element, lane / 4};
}

/// D of wgmma.mma_async m64nN, element 0..N/2-1: one f32 register each, or N/4 f16 registers. PTX ISA 9.7.15.5.1.1.1
/// shows it in a figure; the rule is CUTLASS's CLayout_64xN and the m16n8 convention of mma.sync, and H200 computed
/// exact products with it.
constexpr MatrixPosition wgmma_d(std::uint32_t warp, std::uint32_t lane, std::uint32_t element) {
    return {16 * warp + lane / 4 + 8 * (element / 2 % 2), 8 * (element / 4) + 2 * (lane % 4) + element % 2};
}

/// A of wgmma.mma_async m64nNk16 in registers, element 0..7: row in 0..63, column = k. Sources as for wgmma_d.
constexpr MatrixPosition wgmma_a(std::uint32_t warp, std::uint32_t lane, std::uint32_t element) {
    const MatrixPosition in_warp = mma_a(lane, element);
    return {16 * warp + in_warp.row, in_warp.col};
}

/// Element 0..1 of a lane's register, of an 8 x 8 matrix that ldmatrix loads or stmatrix stores, .b16 (PTX ISA
/// 9.7.14.5.15-16): matrix i of .x1, .x2 and .x4 is in register i. `row` is the row in shared memory. movmatrix
/// (9.7.14.5.17) moves position (row, col) from a register without `transposed` to one with it.
constexpr MatrixPosition ldmatrix_element(std::uint32_t lane, std::uint32_t element, bool transposed) {
    const MatrixPosition plain{lane / 4, 2 * (lane % 4) + element};
    return transposed ? MatrixPosition{plain.col, plain.row} : plain;
}

/// The lane that gives the address of a matrix's row, 16 bytes of shared memory aligned to 16.
constexpr std::uint32_t ldmatrix_address_lane(std::uint32_t matrix, std::uint32_t row) { return 8 * matrix + row; }

}  // namespace block_attention::simulator
