#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "verify/simulator/layout/verdict.h"

/// Tensor Memory of sm_100 (PTX ISA 9.7.16): addresses, where tcgen05.mma keeps its accumulator and its A operand, and
/// which cell each register of tcgen05.ld and tcgen05.st means. No GPU here has it: every layout rests on at least two
/// of the PTX ISA's text, CUTLASS, Triton, TVM and learn-cuda, unless it says otherwise.
namespace block_attention::simulator {

inline constexpr std::uint32_t kTensorMemoryLanes = 128;
inline constexpr std::uint32_t kTensorMemoryColumns = 512;  ///< of 32 bits, in each lane

/// A place in Tensor Memory. In a 32-bit address the lane is in bits 16-31, the column in bits 0-15.
struct TensorMemoryAddress {
    std::uint32_t lane = 0;
    std::uint32_t column = 0;

    bool operator==(const TensorMemoryAddress&) const = default;
};

/// Lanes count modulo 128: kernels that run on pairs of CTAs address the second CTA's as 128..255 (learn-cuda).
constexpr TensorMemoryAddress decode_tensor_memory_address(std::uint32_t address) {
    return {(address >> 16) % kTensorMemoryLanes, address & 0xFFFF};
}
constexpr std::uint32_t encode_tensor_memory_address(TensorMemoryAddress address) {
    return address.lane << 16 | address.column;
}

/// Lane of row 0..m-1 of the accumulator and of A, cta_group::1 without .ws. M = 128 (PTX "layout D"): the row's
/// number. M = 64 ("layout F"): 16 rows in each warp's 32 lanes, the lower ones or, with `first_lane` 16, the upper
/// ones.
constexpr std::uint32_t tensor_memory_lane(std::uint32_t m, std::uint32_t row, std::uint32_t first_lane) {
    return m == 64 ? row / 16 * 32 + row % 16 + first_lane : row;
}

// Columns from the operand's address on: element (row, n) of D has column n, an f16 element in the low half, whose
// upper half nobody describes. Element (row, k) of a 16-bit A has column k / 2, odd k in the high half; 16 k take 8
// columns.

/// Errors: a first lane other than 0 (with M = 64: 0 or 16), columns past 512. Warns of a column that is no multiple of
/// 32: no source states what D's alignment must be.
Verdict check_accumulator(TensorMemoryAddress d, std::uint32_t m, std::uint32_t n);

/// Errors: another first lane than D's (PTX ISA 9.7.16.10.5), columns past 512. Warns of a column that is no multiple
/// of 8.
Verdict check_a_in_tensor_memory(TensorMemoryAddress a, TensorMemoryAddress d);

/// .shape of tcgen05.ld and tcgen05.st: lanes x bits of one repetition.
enum class RegisterShape : std::uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

/// "32x32b", ...
std::string_view name_of(RegisterShape shape);

/// A tcgen05.ld or tcgen05.st.
struct RegisterAccess {
    RegisterShape shape = RegisterShape::s32x32b;
    std::uint32_t repeat = 1;       ///< .x1 .. .x128
    bool packed = false;            ///< .pack::16b or .unpack::16b: a register holds the low halves of two columns
    std::int32_t split_offset = 0;  ///< of .16x32bx2: columns from the first half to the second
};

/// Lanes of Tensor Memory that the warp accesses.
constexpr std::uint32_t rows_of(RegisterShape shape) { return shape == RegisterShape::s32x32b ? 32 : 16; }

/// Registers of each thread for one repetition: 1, 2 or 4.
constexpr std::uint32_t registers_per_repeat(RegisterShape shape) {
    return shape == RegisterShape::s16x256b ? 4 : shape == RegisterShape::s16x128b ? 2 : 1;
}
constexpr std::uint32_t registers_of(const RegisterAccess& access) {
    return registers_per_repeat(access.shape) * access.repeat;
}

/// Columns of one row that the warp accesses; of .16x32bx2, in each of the two halves.
constexpr std::uint32_t columns_of(const RegisterAccess& access) {
    const std::uint32_t rows = access.shape == RegisterShape::s16x32bx2 ? 32 : rows_of(access.shape);
    return registers_of(access) * 32 / rows * (access.packed ? 2 : 1);
}

/// A cell relative to the address operand. The column is negative for a negative split offset.
struct TensorMemoryCell {
    std::uint32_t row = 0;
    std::int32_t column = 0;

    bool operator==(const TensorMemoryCell&) const = default;
};

/// The cell that a lane's register means. If packed, its low half is the low half of this cell and its high half that
/// of the next column; what .unpack::16b writes to the upper halves is not known.
constexpr TensorMemoryCell cell_of(const RegisterAccess& access, std::uint32_t lane, std::uint32_t index) {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
    std::int32_t offset = 0;
    switch (access.shape) {
        case RegisterShape::s32x32b:
            row = lane;
            column = index;
            break;
        case RegisterShape::s16x64b:
            row = lane / 4 + 8 * (lane % 2);
            column = lane / 2 % 2 + 2 * index;
            break;
        case RegisterShape::s16x128b:
            row = lane / 4 + 8 * (index % 2);
            column = lane % 4 + 4 * (index / 2);
            break;
        case RegisterShape::s16x256b:
            row = lane / 4 + 8 * (index / 2 % 2);
            column = 2 * (lane % 4) + index % 2 + 8 * (index / 4);
            break;
        case RegisterShape::s16x32bx2:
            row = lane % 16;
            column = index;
            offset = lane < 16 ? 0 : access.split_offset;
            break;
    }
    return {row, static_cast<std::int32_t>(access.packed ? 2 * column : column) + offset};
}

/// Errors: a repetition that the shape lacks, lanes outside the 32 of the warp (its number modulo 4), a 16-lane shape
/// that starts in the middle of a half, columns outside 0..511. `warp` is the warp's number in the CTA. Warns of a
/// .16x32bx2 whose halves overlap.
Verdict check_register_access(const RegisterAccess& access, TensorMemoryAddress address, std::uint32_t warp);

/// .shape and .multicast of tcgen05.cp, without decompression (PTX ISA 9.7.16.9.2). .4x256b is missing: no text says
/// which rows of the source it reads.
enum class SharedCopyShape : std::uint8_t { c128x256b, c128x128b, c64x128b_02_13, c64x128b_01_23, c32x128b_x4 };

/// The shape that the modifiers name: "128x256b", "64x128b" with "warpx2::02_13", ...
std::optional<SharedCopyShape> parse_shared_copy(std::string_view shape, std::string_view multicast);

/// Rows of the source: a K-major matrix of the tcgen05 descriptor, see k_major_chunk.
constexpr std::uint32_t source_rows(SharedCopyShape shape) {
    switch (shape) {
        case SharedCopyShape::c64x128b_02_13:
        case SharedCopyShape::c64x128b_01_23:
            return 64;
        case SharedCopyShape::c32x128b_x4:
            return 32;
        default:
            return 128;
    }
}

/// 16-byte chunks of each row. Chunk c goes to columns 4 c .. 4 c + 3 from the address on.
constexpr std::uint32_t source_chunks(SharedCopyShape shape) { return shape == SharedCopyShape::c128x256b ? 2 : 1; }

/// The lanes that receive one row of the source.
struct CopyLanes {
    std::array<std::uint32_t, 4> lane{};
    std::uint32_t count = 0;
};

/// Each of the 128 lanes receives one row. Sources: PTX ISA 9.7.16.9.2 for the pairs of warps, CUTLASS
/// copy_traits_sm100 for the rows in them.
constexpr CopyLanes copy_lanes(SharedCopyShape shape, std::uint32_t row) {
    switch (shape) {
        case SharedCopyShape::c64x128b_02_13:
            return {{row, row + 64}, 2};
        case SharedCopyShape::c64x128b_01_23:
            return {{row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32}, 2};
        case SharedCopyShape::c32x128b_x4:
            return {{row, row + 32, row + 64, row + 96}, 4};
        default:
            return {{row}, 1};
    }
}

/// Errors: a lane other than 0, columns past 512.
Verdict check_shared_copy(SharedCopyShape shape, TensorMemoryAddress address);

}  // namespace block_attention::simulator
