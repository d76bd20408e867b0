#include "verify/simulator/layout/tensor_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "verify/simulator/layout/fragments.h"
#include "verify/simulator/layout/layout_algebra.h"

namespace block_attention::simulator {
namespace {

using layout_algebra::Layout;
using layout_algebra::offset_of;

constexpr std::array kShapes{RegisterShape::s32x32b, RegisterShape::s16x64b, RegisterShape::s16x128b,
                             RegisterShape::s16x256b, RegisterShape::s16x32bx2};

/// Every repetition of every shape, packed or not; the halves of .16x32bx2 side by side.
std::vector<RegisterAccess> all_accesses() {
    std::vector<RegisterAccess> accesses;
    for (const RegisterShape shape : kShapes) {
        for (std::uint32_t repeat = 1; repeat * registers_per_repeat(shape) <= 128; repeat *= 2) {
            for (const bool packed : {false, true}) {
                RegisterAccess access{shape, repeat, packed, 0};
                if (shape == RegisterShape::s16x32bx2) {
                    access.split_offset = static_cast<std::int32_t>(columns_of(access));
                }
                accesses.push_back(access);
            }
        }
    }
    return accesses;
}

std::string describe(const RegisterAccess& access) {
    return std::string(name_of(access.shape)) + ".x" + std::to_string(access.repeat) + (access.packed ? " packed" : "");
}

TEST_CASE("addresses: lane above, column below, lanes of the second CTA of a pair wrap") {
    CHECK(decode_tensor_memory_address(0x00200040) == TensorMemoryAddress{32, 64});
    CHECK(decode_tensor_memory_address(0x00A00040) == TensorMemoryAddress{32, 64});
    CHECK(decode_tensor_memory_address(0xFFFFFFFF) == TensorMemoryAddress{127, 65535});
    for (std::uint32_t lane = 0; lane < 128; ++lane) {
        const TensorMemoryAddress address{lane, 4 * lane};
        CHECK(decode_tensor_memory_address(encode_tensor_memory_address(address)) == address);
    }
}

TEST_CASE("accumulator lanes: M = 128 one a row, M = 64 half of each warp's lanes") {
    const Layout layout_f{{16, 1}, {4, 32}};
    for (const std::uint32_t first : {0U, 16U}) {
        for (std::uint32_t row = 0; row < 64; ++row) {
            CHECK(tensor_memory_lane(64, row, first) == offset_of(layout_f, row) + first);
        }
    }
    for (std::uint32_t row = 0; row < 128; ++row) CHECK(tensor_memory_lane(128, row, 0) == row);
    // Two accumulators of M = 64 share columns.
    std::set<std::uint32_t> lanes;
    for (std::uint32_t row = 0; row < 64; ++row) {
        lanes.insert(tensor_memory_lane(64, row, 0));
        lanes.insert(tensor_memory_lane(64, row, 16));
    }
    CHECK(lanes.size() == 128);
}

TEST_CASE("checks of the accumulator's place") {
    CHECK(check_accumulator({0, 0}, 128, 256).ok());
    CHECK(check_accumulator({16, 0}, 64, 256).ok());
    CHECK(check_accumulator({16, 0}, 128, 256).error == "the accumulator starts in lane 16: with M = 128 it must be 0");
    CHECK(check_accumulator({8, 0}, 64, 256).error ==
          "the accumulator starts in lane 8: with M = 64 it must be 0 or 16");
    CHECK(check_accumulator({0, 256}, 128, 256).ok());
    CHECK(check_accumulator({0, 257}, 128, 256).error ==
          "the accumulator takes columns 257..512 of Tensor Memory: it has 512");
    CHECK(check_accumulator({0, 32}, 128, 64).warning.empty());
    CHECK(check_accumulator({0, 16}, 128, 64).warning.find("use a multiple of 32") != std::string::npos);
}

TEST_CASE("checks of A's place") {
    CHECK(check_a_in_tensor_memory({16, 128}, {16, 0}).ok());
    CHECK(check_a_in_tensor_memory({0, 128}, {16, 0}).error ==
          "A starts in lane 0 of Tensor Memory and D in lane 16: they must be equal");
    CHECK(check_a_in_tensor_memory({0, 504}, {0, 0}).ok());
    CHECK(check_a_in_tensor_memory({0, 505}, {0, 0}).error == "A takes columns 505..512 of Tensor Memory: it has 512");
    CHECK(check_a_in_tensor_memory({0, 8}, {0, 0}).warning.empty());
    CHECK(check_a_in_tensor_memory({0, 4}, {0, 0}).warning.find("use a multiple of 8") != std::string::npos);
}

/// CuTe's description in bits: (thread, bit of its registers) -> bit of the accessed region, rows one after the other.
Layout thread_value_layout(const RegisterAccess& access) {
    const std::uint32_t n = access.repeat;
    switch (access.shape) {
        case RegisterShape::s32x32b:
            return {{32, 32 * n}, {32 * n, 1}};
        case RegisterShape::s16x64b:
            return {{2, 8 * 64 * n}, {2, 32}, {8, 64 * n}, {32, 1}, {n, 64}};
        case RegisterShape::s16x128b:
            return {{4, 32}, {8, 128 * n}, {32, 1}, {2, 8 * 128 * n}, {n, 128}};
        case RegisterShape::s16x256b:
            return {{4, 64}, {8, 256 * n}, {64, 1}, {2, 8 * 256 * n}, {n, 256}};
        case RegisterShape::s16x32bx2:
            return {{16, 64 * n}, {2, 32 * n}, {32 * n, 1}};
    }
    return {};
}

TEST_CASE("tcgen05.ld and st: every shape, width and packing is CuTe's layout") {
    for (const RegisterAccess& access : all_accesses()) {
        CAPTURE(describe(access));
        const Layout layout = thread_value_layout(access);
        const std::uint32_t registers = registers_of(access);
        REQUIRE(layout_algebra::size_of(layout) == 32 * 32 * registers);
        const std::uint32_t rows = rows_of(access.shape);
        const std::uint32_t row_bits = 32 * 32 * registers / rows;
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t index = 0; index < registers; ++index) {
                for (const std::uint32_t half : {0U, 1U}) {  // of the register
                    const std::uint32_t bit = offset_of(layout, lane + 32 * (32 * index + 16 * half));
                    // Packed, the region is made of the low halves of the columns; else of whole columns.
                    const std::uint32_t column = bit % row_bits / (access.packed ? 16 : 32);
                    const TensorMemoryCell cell = cell_of(access, lane, index);
                    REQUIRE(cell.row == bit / row_bits);
                    REQUIRE(cell.column + static_cast<int>(access.packed ? half : 0) == static_cast<int>(column));
                }
            }
        }
    }
}

TEST_CASE("tcgen05.ld and st reach every cell of their region once") {
    for (const RegisterAccess& access : all_accesses()) {
        CAPTURE(describe(access));
        const bool split = access.shape == RegisterShape::s16x32bx2;
        const std::uint32_t columns = columns_of(access) * (split ? 2 : 1);
        std::set<std::pair<std::uint32_t, std::int32_t>> seen;
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t index = 0; index < registers_of(access); ++index) {
                const TensorMemoryCell cell = cell_of(access, lane, index);
                for (std::int32_t next = 0; next < (access.packed ? 2 : 1); ++next) {
                    CHECK(seen.emplace(cell.row, cell.column + next).second);
                }
            }
        }
        CHECK(seen.size() == std::size_t{rows_of(access.shape)} * columns);
        CHECK(seen.rbegin()->first == rows_of(access.shape) - 1);
        for (const auto& [row, column] : seen) CHECK((column >= 0 && column < static_cast<int>(columns)));
    }
}

TEST_CASE("register counts are those of the PTX ISA's table") {
    struct Row {
        std::uint32_t repeat;
        std::array<std::uint32_t, 3> registers;  // 16x32bx2, 16x64b, 32x32b; 16x128b; 16x256b; 0: not available
    };
    for (const Row& row :
         {Row{1, {1, 2, 4}}, Row{2, {2, 4, 8}}, Row{4, {4, 8, 16}}, Row{8, {8, 16, 32}}, Row{16, {16, 32, 64}},
          Row{32, {32, 64, 128}}, Row{64, {64, 128, 0}}, Row{128, {128, 0, 0}}}) {
        for (const RegisterShape shape : kShapes) {
            const std::size_t group = shape == RegisterShape::s16x256b ? 2 : shape == RegisterShape::s16x128b ? 1 : 0;
            const RegisterAccess access{shape, row.repeat, false, 256};
            CHECK(check_register_access(access, {0, 0}, 0).ok() == (row.registers.at(group) != 0));
            if (row.registers.at(group) != 0) CHECK(registers_of(access) == row.registers.at(group));
        }
    }
    for (const std::uint32_t repeat : {0U, 3U, 96U, 256U}) {
        CHECK(check_register_access({RegisterShape::s32x32b, repeat, false, 0}, {0, 0}, 0).error ==
              ".32x32b is repeated " + std::to_string(repeat) + " times: it must be a power of two of at most 128");
    }
}

TEST_CASE("16x256b is the accumulator of mma m16n8, 16x128b the A of m16n8k8 in 32-bit elements") {
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        for (std::uint32_t index = 0; index < 128; ++index) {
            const TensorMemoryCell wide = cell_of({RegisterShape::s16x256b, 32, false, 0}, lane, index);
            const MatrixPosition c = mma_c(lane, index % 4);
            CHECK(wide == TensorMemoryCell{c.row, static_cast<std::int32_t>(c.col + 8 * (index / 4))});
            const TensorMemoryCell narrow = cell_of({RegisterShape::s16x128b, 64, false, 0}, lane, index);
            const MatrixPosition a = mma_a_tf32(lane, index % 4);
            CHECK(narrow == TensorMemoryCell{a.row, static_cast<std::int32_t>(a.col + 8 * (index / 4))});
        }
    }
}

TEST_CASE("16x32bx2 reads two halves at any distance, packed or not") {
    for (const std::int32_t offset : {-64, 64, 100, 256}) {
        for (const bool packed : {false, true}) {
            const RegisterAccess access{RegisterShape::s16x32bx2, 32, packed, offset};
            for (std::uint32_t lane = 0; lane < 32; ++lane) {
                for (std::uint32_t index = 0; index < 32; ++index) {
                    const auto column = static_cast<std::int32_t>(packed ? 2 * index : index);
                    CHECK(cell_of(access, lane, index) ==
                          TensorMemoryCell{lane % 16, lane < 16 ? column : column + offset});
                }
            }
        }
    }
}

TEST_CASE("a warp may touch only its quarter of the lanes") {
    for (const RegisterShape shape : kShapes) {
        for (std::uint32_t warp = 0; warp < 12; ++warp) {
            for (std::uint32_t lane = 0; lane < 128; ++lane) {
                const bool ok = lane == warp % 4 * 32 || (rows_of(shape) == 16 && lane == warp % 4 * 32 + 16);
                CHECK(check_register_access({shape, 1, false, 64}, {lane, 0}, warp).ok() == ok);
            }
        }
    }
    CHECK(check_register_access({RegisterShape::s16x64b, 1, false, 0}, {0, 0}, 5).error ==
          "warp 5 accesses Tensor Memory with .16x64b from lane 0: it must start in lane 32 or 48");
    CHECK(check_register_access({RegisterShape::s32x32b, 1, false, 0}, {0, 0}, 5).error ==
          "warp 5 accesses Tensor Memory with .32x32b from lane 0: it must start in lane 32");
}

TEST_CASE("columns end at 511") {
    for (const RegisterAccess& access : all_accesses()) {
        CAPTURE(describe(access));
        std::int32_t last = 0;
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t index = 0; index < registers_of(access); ++index) {
                last = std::max(last, cell_of(access, lane, index).column + (access.packed ? 1 : 0));
            }
        }
        for (std::uint32_t column = 0; column < 520; ++column) {
            const Verdict verdict = check_register_access(access, {0, column}, 0);
            CHECK(verdict.ok() == (column + static_cast<std::uint32_t>(last) < 512));
            CHECK(verdict.warning.empty());
        }
    }
    const auto check = [](std::int32_t offset, std::uint32_t column) {
        return check_register_access({RegisterShape::s16x32bx2, 8, false, offset}, {0, column}, 0);
    };
    CHECK(check(-1, 0).error == ".16x32bx2.x8 takes columns -1..7 of Tensor Memory: it has 512");
    CHECK(check(-8, 8).ok());
    CHECK(check(512, 0).error == ".16x32bx2.x8 takes columns 0..519 of Tensor Memory: it has 512");
    CHECK(check(4, 0).warning == "the halves of .16x32bx2.x8 overlap: they are 8 columns wide and 4 apart");
    CHECK(check(8, 0).warning.empty());
}

TEST_CASE("a row-per-thread store of packed P is what the next product reads as A") {
    // Thread = row, register i = {P[2i+1], P[2i]}: element (row, k) must be in column k / 2, odd k in the high half.
    for (std::uint32_t warp = 0; warp < 4; ++warp) {
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t index = 0; index < 32; ++index) {
                const TensorMemoryCell cell = cell_of({RegisterShape::s32x32b, 32, false, 0}, lane, index);
                CHECK(32 * warp + cell.row == tensor_memory_lane(128, 32 * warp + lane, 0));
                if (lane < 16) CHECK(32 * warp + cell.row == tensor_memory_lane(64, 16 * warp + lane, 0));
                CHECK(cell.column == static_cast<std::int32_t>(2 * index / 2));
            }
        }
    }
}

TEST_CASE("tcgen05.cp: every lane gets one row, in the warps that the modifiers name") {
    struct Copy {
        SharedCopyShape shape;
        std::string_view name;
        std::string_view multicast;
        std::uint32_t rows;
        std::uint32_t chunks;
        Layout lane_of_copy;  // (row, repetition) -> lane, from CuTe's copy atoms
    };
    const std::vector<Copy> copies{
        {SharedCopyShape::c128x256b, "128x256b", "", 128, 2, {{128, 1}}},
        {SharedCopyShape::c128x128b, "128x128b", "", 128, 1, {{128, 1}}},
        {SharedCopyShape::c64x128b_02_13, "64x128b", "warpx2::02_13", 64, 1, {{64, 1}, {2, 64}}},
        {SharedCopyShape::c64x128b_01_23, "64x128b", "warpx2::01_23", 64, 1, {{32, 1}, {2, 64}, {2, 32}}},
        {SharedCopyShape::c32x128b_x4, "32x128b", "warpx4", 32, 1, {{32, 1}, {4, 32}}},
    };
    for (const Copy& copy : copies) {
        CAPTURE(copy.name);
        CHECK(parse_shared_copy(copy.name, copy.multicast) == copy.shape);
        CHECK(source_rows(copy.shape) == copy.rows);
        CHECK(source_chunks(copy.shape) == copy.chunks);
        std::set<std::uint32_t> lanes;
        for (std::uint32_t row = 0; row < copy.rows; ++row) {
            const CopyLanes targets = copy_lanes(copy.shape, row);
            CHECK(targets.count == 128 / copy.rows);
            for (std::uint32_t i = 0; i < targets.count; ++i) {
                CHECK(targets.lane.at(i) == offset_of(copy.lane_of_copy, row + copy.rows * i));
                lanes.insert(targets.lane.at(i));
            }
        }
        CHECK(lanes.size() == 128);
    }
    // The pairs of warps in the PTX ISA's words.
    const auto warps = [](SharedCopyShape shape, std::uint32_t row) {
        const CopyLanes targets = copy_lanes(shape, row);
        return std::pair{targets.lane[0] / 32, targets.lane[1] / 32};
    };
    CHECK(warps(SharedCopyShape::c64x128b_02_13, 0) == std::pair{0U, 2U});
    CHECK(warps(SharedCopyShape::c64x128b_02_13, 32) == std::pair{1U, 3U});
    CHECK(warps(SharedCopyShape::c64x128b_01_23, 0) == std::pair{0U, 1U});
    CHECK(warps(SharedCopyShape::c64x128b_01_23, 32) == std::pair{2U, 3U});

    CHECK_FALSE(parse_shared_copy("4x256b", "").has_value());
    CHECK_FALSE(parse_shared_copy("64x128b", "").has_value());
    CHECK_FALSE(parse_shared_copy("32x128b", "warpx2::02_13").has_value());
    CHECK_FALSE(parse_shared_copy("128x128b", "warpx4").has_value());
    CHECK(check_shared_copy(SharedCopyShape::c128x256b, {0, 504}).ok());
    CHECK(check_shared_copy(SharedCopyShape::c128x256b, {0, 505}).error ==
          "tcgen05.cp takes columns 505..512 of Tensor Memory: it has 512");
    CHECK(check_shared_copy(SharedCopyShape::c32x128b_x4, {0, 508}).ok());
    CHECK(check_shared_copy(SharedCopyShape::c32x128b_x4, {32, 0}).error ==
          "tcgen05.cp writes all 128 lanes, but its address starts in lane 32: use lane 0");
}

}  // namespace
}  // namespace block_attention::simulator
