#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "verify/simulator/layout/matrix_descriptor.h"
#include "verify/simulator/layout/tensor_copy.h"

/// Tensor copies and matrix descriptors meet here: a tile that TMA wrote, read as a product reads it.
namespace block_attention::simulator {
namespace {

/// A matrix [row][col] of 16-bit elements whose value names its place, as global memory.
struct GlobalMatrix {
    GlobalMatrix(std::uint32_t row_count, std::uint32_t col_count) : rows(row_count), cols(col_count) {
        for (std::uint32_t i = 0; i < rows * cols; ++i) data.push_back(static_cast<std::uint16_t>(i));
    }

    [[nodiscard]] std::uint16_t at(std::uint32_t row, std::uint32_t col) const { return data.at(row * cols + col); }

    std::uint32_t rows;
    std::uint32_t cols;
    std::vector<std::uint16_t> data;
};

class SharedTile {
  public:
    /// Loads the matrix in boxes of `width` columns, one block of all rows after the other, from `base` on.
    SharedTile(const GlobalMatrix& matrix, std::uint32_t width, SwizzleMode swizzle, std::uint32_t base)
        : bytes_(kSharedBytes, kUntouched) {
        TensorMap map;
        map.type = TensorMapType::bfloat16;
        map.rank = 2;
        map.dims = {matrix.cols, matrix.rows, 1, 1, 1};
        map.byte_strides[0] = std::uint64_t{2} * matrix.cols;
        map.box = {width, matrix.rows, 1, 1, 1};
        map.swizzle = swizzle;
        REQUIRE(validate(map, 100).empty());
        const TensorBox box(map);
        const auto* source = reinterpret_cast<const std::byte*>(matrix.data.data());
        for (std::uint32_t block = 0; block < matrix.cols / width; ++block) {
            const TensorCoordinates start{static_cast<std::int32_t>(block * width), 0};
            const std::uint32_t address = base + block * box.shared_bytes();
            REQUIRE(check_tensor_copy(map, start, address, TensorCopyDirection::load).empty());
            for_each_run(map, start, address, TensorCopyDirection::load, [&](const TensorRun& run) {
                REQUIRE(run.inside);
                std::memcpy(&bytes_.at(run.shared), source + run.global, run.bytes);
            });
        }
    }

    /// Elements (mn, k) of the operand that do not have the value expected(mn, k).
    template <typename Expected>
    [[nodiscard]] std::uint32_t count_wrong(const MatrixDescriptor& d, Major major, std::uint32_t extent,
                                            Expected&& expected) const {
        std::vector<std::uint16_t> packed(std::size_t{extent} * kMmaK);
        gather_operand(
            d, major, extent, [&](std::uint32_t address) { return &bytes_.at(address); }, packed.data());
        std::uint32_t wrong = 0;
        for (std::uint32_t mn = 0; mn < extent; ++mn) {
            for (std::uint32_t k = 0; k < kMmaK; ++k) wrong += packed[mn * kMmaK + k] != expected(mn, k) ? 1 : 0;
        }
        return wrong;
    }

  private:
    // More than a CTA has, so that wrong descriptors stay inside.
    static constexpr std::size_t kSharedBytes = std::size_t{1} << 19;
    static constexpr std::byte kUntouched{0xEE};

    std::vector<std::byte> bytes_;
};

struct Mode {
    SwizzleMode swizzle;
    std::uint32_t width;  ///< columns of a box: the span, or one chunk
};

constexpr std::array kModes{Mode{SwizzleMode::none, 8}, Mode{SwizzleMode::b32, 16}, Mode{SwizzleMode::b64, 32},
                            Mode{SwizzleMode::b128, 64}};

/// The descriptor of K step `step` of a tile [mn][k], K-major: fact sheet, natural values of densely packed boxes.
MatrixDescriptor k_major_step(const Mode& mode, std::uint32_t base, std::uint32_t rows, std::uint32_t step) {
    const std::uint32_t pitch = mode.width * 2;
    const std::uint32_t k = step * kMmaK;
    MatrixDescriptor d;
    d.swizzle = mode.swizzle;
    d.start = base + k / mode.width * rows * pitch + k % mode.width * 2;
    d.stride = 8 * pitch;
    d.leading = mode.swizzle == SwizzleMode::none ? rows * pitch : 16;
    return d;
}

/// The same of a tile [k][mn], MN-major.
MatrixDescriptor mn_major_step(const Mode& mode, std::uint32_t base, std::uint32_t rows, std::uint32_t step) {
    const std::uint32_t pitch = mode.width * 2;
    MatrixDescriptor d;
    d.swizzle = mode.swizzle;
    d.start = base + step * kMmaK * pitch;
    d.stride = mode.swizzle == SwizzleMode::none ? rows * pitch : 8 * pitch;
    d.leading = mode.swizzle == SwizzleMode::none ? 8 * pitch : rows * pitch;
    return d;
}

TEST_CASE("a tile written by TMA and read through its descriptor gives element (mn, k)") {
    for (const Mode& mode : kModes) {
        for (const std::uint32_t rows : {64U, 128U}) {
            for (std::uint32_t line = 0; line < 8; ++line) {
                const std::uint32_t base = 0x2000 + 128 * line;
                const GlobalMatrix matrix(rows, 128);
                const SharedTile tile(matrix, mode.width, mode.swizzle, base);
                for (std::uint32_t step = 0; step < 128 / kMmaK; ++step) {
                    const MatrixDescriptor d = k_major_step(mode, base, rows, step);
                    const auto expected = [&](std::uint32_t mn, std::uint32_t k) {
                        return matrix.at(mn, step * kMmaK + k);
                    };
                    CHECK(tile.count_wrong(decode_wgmma_descriptor(encode_wgmma_descriptor(d)), Major::k, rows,
                                           expected) == 0);
                    CHECK(tile.count_wrong(decode_tcgen05_descriptor(encode_tcgen05_descriptor(d)), Major::k, rows,
                                           expected) == 0);
                }
                for (std::uint32_t step = 0; step < rows / kMmaK; ++step) {
                    const MatrixDescriptor d = mn_major_step(mode, base, rows, step);
                    const auto expected = [&](std::uint32_t mn, std::uint32_t k) {
                        return matrix.at(step * kMmaK + k, mn);
                    };
                    CHECK(tile.count_wrong(decode_wgmma_descriptor(encode_wgmma_descriptor(d)), Major::mn, 128,
                                           expected) == 0);
                    CHECK(tile.count_wrong(decode_tcgen05_descriptor(encode_tcgen05_descriptor(d)), Major::mn, 128,
                                           expected) == 0);
                }
            }
        }
    }
}

TEST_CASE("a wrong descriptor field reads wrong elements") {
    constexpr std::uint32_t kRows = 128;
    const std::uint32_t base = 0x2000;
    const GlobalMatrix matrix(kRows, 128);
    for (const Mode& mode : kModes) {
        const SharedTile tile(matrix, mode.width, mode.swizzle, base);
        const auto wrong_k = [&](const MatrixDescriptor& d) {
            return tile.count_wrong(d, Major::k, kRows,
                                    [&](std::uint32_t mn, std::uint32_t k) { return matrix.at(mn, k); });
        };
        const auto wrong_mn = [&](const MatrixDescriptor& d) {
            return tile.count_wrong(d, Major::mn, 128,
                                    [&](std::uint32_t mn, std::uint32_t k) { return matrix.at(k, mn); });
        };
        const MatrixDescriptor k_major = k_major_step(mode, base, kRows, 0);
        const MatrixDescriptor mn_major = mn_major_step(mode, base, kRows, 0);
        const auto changed = [](MatrixDescriptor d, auto&& edit) {
            edit(d);
            return d;
        };
        CHECK(wrong_k(k_major) == 0);
        CHECK(wrong_mn(mn_major) == 0);
        // Swizzled, both need the same stride, and K-major ignores the leading offset.
        CHECK((wrong_k(mn_major) > 0) == (mode.swizzle == SwizzleMode::none));
        CHECK(wrong_mn(k_major) > 0);
        const auto stride = [](MatrixDescriptor& d) { d.stride *= 2; };
        CHECK(wrong_k(changed(k_major, stride)) > 0);
        CHECK(wrong_mn(changed(mn_major, stride)) > 0);
        const auto leading = [](MatrixDescriptor& d) { d.leading *= 2; };
        CHECK((wrong_k(changed(k_major, leading)) > 0) == (mode.swizzle == SwizzleMode::none));
        CHECK(wrong_mn(changed(mn_major, leading)) > 0);
        for (const Mode& other : kModes) {
            if (other.swizzle == mode.swizzle) continue;
            const auto swizzle = [&](MatrixDescriptor& d) { d.swizzle = other.swizzle; };
            CHECK(wrong_k(changed(k_major, swizzle)) > 0);
            CHECK(wrong_mn(changed(mn_major, swizzle)) > 0);
        }
        const auto base_offset = [](MatrixDescriptor& d) { d.base_offset = 1; };
        CHECK((wrong_k(changed(k_major, base_offset)) > 0) == (mode.swizzle != SwizzleMode::none));
    }
}

TEST_CASE("one 3-D copy of 64-column slices writes what two copies write") {
    const GlobalMatrix matrix(64, 128);
    const std::uint32_t base = 0x4000;
    TensorMap map;
    map.type = TensorMapType::bfloat16;
    map.rank = 3;
    map.dims = {64, 64, 2, 1, 1};
    map.byte_strides = {256, 128, 0, 0};
    map.box = {64, 64, 2, 1, 1};
    map.swizzle = SwizzleMode::b128;
    REQUIRE(validate(map, 90).empty());
    std::uint32_t seen = 0;
    for_each_run(map, {}, base, TensorCopyDirection::load, [&](const TensorRun& run) {
        const auto element = static_cast<std::uint32_t>(run.global / 2);
        const std::uint32_t row = element / 128;
        const std::uint32_t col = element % 128;
        const MatrixDescriptor d = k_major_step(kModes[3], base, 64, col / kMmaK);
        REQUIRE(run.shared == element_address(d, Major::k, row, col % kMmaK));
        seen += run.bytes;
    });
    CHECK(seen == matrix.data.size() * 2);
}

}  // namespace
}  // namespace block_attention::simulator
