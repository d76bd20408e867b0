#include "verify/simulator/layout/fragments.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <vector>

#include "verify/simulator/layout/layout_algebra.h"

namespace block_attention::simulator {
namespace {

using layout_algebra::Layout;
using layout_algebra::offset_of;

/// Compares a fragment with its thread-value layout, (thread, element) -> row + rows * col, and checks that it covers
/// the matrix.
void check_fragment(std::uint32_t threads, std::uint32_t elements, std::uint32_t rows, std::uint32_t cols,
                    const Layout& layout, const std::function<MatrixPosition(std::uint32_t, std::uint32_t)>& position) {
    REQUIRE(layout_algebra::size_of(layout) == threads * elements);
    REQUIRE(threads * elements == rows * cols);
    std::set<std::uint32_t> seen;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        for (std::uint32_t element = 0; element < elements; ++element) {
            const MatrixPosition p = position(thread, element);
            REQUIRE(p.row < rows);
            REQUIRE(p.col < cols);
            REQUIRE(p.row + rows * p.col == offset_of(layout, thread + threads * element));
            seen.insert(p.row + rows * p.col);
        }
    }
    CHECK(seen.size() == rows * cols);
}

TEST_CASE("mma.sync fragments are CuTe's thread-value layouts") {
    check_fragment(32, 8, 16, 16, {{4, 32}, {8, 1}, {2, 16}, {2, 8}, {2, 128}}, mma_a);
    check_fragment(32, 4, 16, 8, {{4, 32}, {8, 1}, {2, 16}, {2, 8}}, mma_a);
    const auto b = [](std::uint32_t lane, std::uint32_t element) {  // CuTe counts B as N x K
        const MatrixPosition p = mma_b(lane, element);
        return MatrixPosition{p.col, p.row};
    };
    check_fragment(32, 4, 8, 16, {{4, 16}, {8, 1}, {2, 8}, {2, 64}}, b);
    check_fragment(32, 2, 8, 8, {{4, 16}, {8, 1}, {2, 8}}, b);
    check_fragment(32, 4, 16, 8, {{4, 32}, {8, 1}, {2, 16}, {2, 8}}, mma_c);
    check_fragment(32, 4, 16, 8, {{4, 16}, {8, 1}, {2, 8}, {2, 64}}, mma_a_tf32);
    check_fragment(32, 2, 8, 8, {{4, 8}, {8, 1}, {2, 32}}, [](std::uint32_t lane, std::uint32_t element) {
        const MatrixPosition p = mma_b_tf32(lane, element);
        return MatrixPosition{p.col, p.row};
    });
}

TEST_CASE("mma.sync fragments follow the PTX ISA's cases") {
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t group = lane >> 2;
        const std::uint32_t in_group = lane % 4;
        for (std::uint32_t i = 0; i < 8; ++i) {
            const std::uint32_t row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
            const std::uint32_t col = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
            CHECK(mma_a(lane, i) == MatrixPosition{row, col});
        }
        for (std::uint32_t i = 0; i < 4; ++i) {
            CHECK(mma_b(lane, i) == MatrixPosition{in_group * 2 + (i & 1) + (i < 2 ? 0 : 8), group});
            CHECK(mma_c(lane, i) == MatrixPosition{i < 2 ? group : group + 8, in_group * 2 + (i & 1)});
            CHECK(mma_a_tf32(lane, i) ==
                  MatrixPosition{i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4});
        }
        CHECK(mma_b_tf32(lane, 0) == MatrixPosition{in_group, group});
        CHECK(mma_b_tf32(lane, 1) == MatrixPosition{in_group + 4, group});
    }
}

TEST_CASE("wgmma fragments are CuTe's thread-value layouts of 128 threads, for every N") {
    for (std::uint32_t n = 8; n <= 256; n += 8) {
        check_fragment(
            128, n / 2, 64, n, {{4, 128}, {8, 1}, {4, 16}, {2, 64}, {2, 8}, {n / 8, 512}},
            [](std::uint32_t thread, std::uint32_t element) { return wgmma_d(thread / 32, thread % 32, element); });
    }
    check_fragment(
        128, 8, 64, 16, {{4, 128}, {8, 1}, {4, 16}, {2, 64}, {2, 8}, {2, 512}},
        [](std::uint32_t thread, std::uint32_t element) { return wgmma_a(thread / 32, thread % 32, element); });
}

TEST_CASE("a wgmma accumulator is a row of m16n8 accumulators, and 16 columns of it are the next product's A") {
    for (std::uint32_t warp = 0; warp < 4; ++warp) {
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t element = 0; element < 128; ++element) {
                const MatrixPosition block = mma_c(lane, element % 4);
                CHECK(wgmma_d(warp, lane, element) ==
                      MatrixPosition{16 * warp + block.row, 8 * (element / 4) + block.col});
                const MatrixPosition a = wgmma_a(warp, lane, element % 8);
                CHECK(wgmma_d(warp, lane, element) == MatrixPosition{a.row, 16 * (element / 8) + a.col});
            }
        }
    }
}

TEST_CASE("ldmatrix .x4 of a 16 x 16 tile gives A of m16n8k16, .trans of a [k][n] tile gives B") {
    // Matrices 0 and 1 are rows 0-7 and 8-15 of the left half, 2 and 3 of the right half.
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        for (std::uint32_t element = 0; element < 8; ++element) {
            const std::uint32_t matrix = element / 2;
            const MatrixPosition in_matrix = ldmatrix_element(lane, element % 2, false);
            CHECK(mma_a(lane, element) ==
                  MatrixPosition{8 * (matrix % 2) + in_matrix.row, 8 * (matrix / 2) + in_matrix.col});
        }
        for (std::uint32_t element = 0; element < 4; ++element) {
            const std::uint32_t matrix = element / 2;
            const MatrixPosition in_matrix = ldmatrix_element(lane, element % 2, true);
            CHECK(mma_b(lane, element) == MatrixPosition{8 * matrix + in_matrix.row, in_matrix.col});
        }
    }
}

TEST_CASE("ldmatrix and stmatrix: four lanes a row, every element once, an address for every row") {
    for (const bool transposed : {false, true}) {
        std::set<std::uint32_t> seen;
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            for (std::uint32_t element = 0; element < 2; ++element) {
                const MatrixPosition p = ldmatrix_element(lane, element, transposed);
                const std::uint32_t owner = transposed ? p.col * 4 + p.row / 2 : p.row * 4 + p.col / 2;
                CHECK(owner == lane);
                seen.insert(p.row * 8 + p.col);
            }
        }
        CHECK(seen.size() == 64);
    }
    std::set<std::uint32_t> lanes;
    for (std::uint32_t matrix = 0; matrix < 4; ++matrix) {
        for (std::uint32_t row = 0; row < 8; ++row) lanes.insert(ldmatrix_address_lane(matrix, row));
    }
    CHECK(lanes.size() == 32);
    CHECK(*lanes.rbegin() == 31);
    CHECK(ldmatrix_address_lane(2, 3) == 19);
}

TEST_CASE("movmatrix: lane 0 of the result holds the first column") {
    CHECK(ldmatrix_element(0, 0, true) == MatrixPosition{0, 0});
    CHECK(ldmatrix_element(0, 1, true) == MatrixPosition{1, 0});
    CHECK(ldmatrix_element(5, 1, true) == MatrixPosition{3, 1});
}

}  // namespace
}  // namespace block_attention::simulator
