#include "verify/compare.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "verify/bound.h"
#include "verify/emulated_stage.h"

using namespace block_attention;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kDTypes{DType::fp16, DType::bf16, DType::fp32};

/// The distance from 1 to the next number.
double unit_of_one(DType dtype) { return std::ldexp(1.0, 1 - format_of(dtype).significand_bits); }
double smallest_subnormal(DType dtype) {
    return std::ldexp(1.0, format_of(dtype).min_exponent + 1 - format_of(dtype).significand_bits);
}
double largest(DType dtype) { return std::ldexp(2 - unit_of_one(dtype), format_of(dtype).max_exponent); }

}  // namespace

TEST_CASE("share: inside the rounding interval it is 0, outside it counts from the interval's end") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        const double unit = unit_of_one(dtype);
        const double number = 1.5;
        for (const double sign : {1.0, -1.0}) {
            const auto share = [&](double expected, double error) {
                return bound_share(dtype, sign * number, sign * expected, error);
            };
            CHECK(share(number, 0) == 0);
            CHECK(share(number + 0.4375 * unit, 0) == 0);
            CHECK(share(number - 0.4375 * unit, 0) == 0);
            CHECK(share(number + 0.75 * unit, unit) == 0.25);
            CHECK(share(number - 2.5 * unit, unit) == 2);
            CHECK(share(-number, 1) == 3 - unit / 2);
            CHECK(share(number + unit, 0) == kInfinity);
        }
    }
}

TEST_CASE("share: a tie belongs to the even neighbour") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        const double unit = unit_of_one(dtype);
        const double even = 1.5;
        const double odd = 1.5 + unit;
        CHECK(bound_share(dtype, even, even + unit / 2, 0) == 0);
        CHECK(bound_share(dtype, even, even - unit / 2, 0) == 0);
        // Without any error the odd neighbour is wrong; with any at all, however small, it is explained.
        CHECK(bound_share(dtype, odd, even + unit / 2, 0) == kInfinity);
        CHECK(bound_share(dtype, odd, even + unit / 2, 1e-300) == 0);
    }
}

TEST_CASE("share: below a power of two the numbers lie twice as close") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        const double unit = unit_of_one(dtype);
        CHECK(bound_share(dtype, 1, 1 + unit / 2, 0) == 0);
        CHECK(bound_share(dtype, 1, 1 - unit / 4, 0) == 0);
        CHECK(bound_share(dtype, 1, 1 - unit / 2, unit) == 0.25);
        CHECK(bound_share(dtype, 1, 1 + unit, unit) == 0.5);
    }
}

TEST_CASE("share: subnormal numbers are evenly spaced, and zero has no sign") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        const double unit = smallest_subnormal(dtype);
        for (const double zero : {0.0, -0.0}) {
            CHECK(bound_share(dtype, zero, 0.0, 0) == 0);
            CHECK(bound_share(dtype, zero, -0.0, 0) == 0);
            CHECK(bound_share(dtype, zero, unit / 2, 0) == 0);
            CHECK(bound_share(dtype, zero, -unit / 2, 0) == 0);
            CHECK(bound_share(dtype, zero, unit, unit) == 0.5);
            CHECK(bound_share(dtype, zero, -unit, unit) == 0.5);
        }
        CHECK(bound_share(dtype, unit, unit / 2, 0) == kInfinity);
        CHECK(bound_share(dtype, unit, 0.75 * unit, 0) == 0);
        CHECK(bound_share(dtype, unit, 0, unit) == 0.5);
        const double smallest_normal = std::ldexp(1.0, format_of(dtype).min_exponent);
        CHECK(bound_share(dtype, smallest_normal, smallest_normal - unit / 2, 0) == 0);
        CHECK(bound_share(dtype, smallest_normal, smallest_normal - unit, unit) == 0.5);
    }
}

TEST_CASE("share: overflow begins half a unit beyond the largest number") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        const double most = largest(dtype);
        const double unit = std::ldexp(unit_of_one(dtype), format_of(dtype).max_exponent);
        const double limit = most + unit / 2;
        for (const double sign : {1.0, -1.0}) {
            const auto share = [&](double computed, double expected, double error) {
                return bound_share(dtype, sign * computed, sign * expected, error);
            };
            CHECK(share(most, most + 0.4375 * unit, 0) == 0);
            CHECK(share(most, limit, 0) == kInfinity);
            CHECK(share(most, most + unit, unit) == 0.5);
            CHECK(share(kInfinity, limit, 0) == 0);
            CHECK(share(kInfinity, 2 * most, 0) == 0);
            CHECK(share(kInfinity, most + 0.4375 * unit, most) == kInfinity);
            CHECK(share(-kInfinity, 2 * most, most) == kInfinity);
        }
    }
}

TEST_CASE("share: numbers that are not finite") {
    for (const DType dtype : kDTypes) {
        CAPTURE(name_of(dtype));
        CHECK(bound_share(dtype, kNan, 1, 1e300) == kInfinity);
        CHECK(bound_share(dtype, kInfinity, 1, kInfinity) == kInfinity);
        CHECK(bound_share(dtype, 1, kNan, 1) == kInfinity);
        CHECK(bound_share(dtype, 1, kInfinity, 1) == kInfinity);
        CHECK(bound_share(dtype, 1, 2, kNan) == kInfinity);
        for (const double computed : {kNan, kInfinity, -kInfinity}) {
            for (const double expected : {kNan, kInfinity, -kInfinity}) {
                CHECK(bound_share(dtype, computed, expected, kNan) == 0);
            }
        }
    }
}

TEST_CASE("share agrees with rounding: 0 exactly where the expected number rounds to the computed one") {
    for (const DType dtype : kDTypes) {
        const TileMatrix numbers = random_matrix(DType::fp32, 1, 500, 1, 3);
        const double unit = unit_of_one(dtype);
        for (const double base : numbers.reshaped()) {
            // Quarters of a unit reach every tie and every interval near the number; some are subnormal in fp16.
            const double number = round_to(dtype, std::ldexp(base, static_cast<int>(std::lround(-3 * base * base))));
            const double step = std::ldexp(unit, std::max(std::ilogb(number), format_of(dtype).min_exponent)) / 4;
            for (int quarters = -6; quarters <= 6; ++quarters) {
                const double expected = number + quarters * step;
                CAPTURE(number);
                CAPTURE(quarters);
                CHECK((bound_share(dtype, number, expected, 0) == 0) == (round_to(dtype, expected) == number));
            }
        }
    }
}

TEST_CASE("the oracle's own output uses none of the bound, in any layout") {
    for (const DType dtype : kDTypes) {
        for (const std::vector<std::int64_t>& offsets :
             {std::vector<std::int64_t>{}, std::vector<std::int64_t>{0, 65, 65, 130}}) {
            const OwnedProblem owned(dtype, 3, 2, 130, 16, 5, offsets);
            run_oracle(owned.problem());
            const Comparison comparison = compare_forward(owned.problem(), arithmetic_of(EmulatedStage{}, dtype));
            const std::size_t tiles = offsets.empty() ? 9 : 4;
            CHECK(comparison.passed());
            CHECK(comparison.largest_share == 0);
            CHECK(comparison.elements == (offsets.empty() ? 3 : 1) * 130 * 2 * 16);
            CHECK(comparison.shares == std::vector<double>(2 * tiles, 0.0));
            CHECK(comparison.tiles.size() == 5);
        }
    }
}

TEST_CASE("a comparison names the worst elements, tiles and heads") {
    OwnedProblem owned(DType::fp16, 2, 3, 70, 64, 9);
    run_oracle(owned.problem());
    const std::vector<Tile> tiles = list_tiles(owned.problem());
    REQUIRE(tiles.size() == 4);
    const auto change = [&](std::size_t tile, std::int64_t head, std::int64_t row, std::int64_t dim, double by) {
        TileMatrix o = owned.output(tiles[tile], head);
        o(row, dim) += by;
        owned.store(Operand::o, tiles[tile], head, o);
        return o(row, dim);
    };
    change(0, 2, 10, 20, 0.25);
    const double worse = change(0, 2, 63, 5, 64);
    change(3, 1, 5, 63, -2);

    const Arithmetic arithmetic = arithmetic_of(EmulatedStage{}, DType::fp16);
    const Comparison comparison = compare_forward(owned.problem(), arithmetic, 3);
    CHECK_FALSE(comparison.passed());
    CHECK(comparison.wrong == 3);
    REQUIRE(comparison.tiles.size() == 3);
    const TileComparison& first = comparison.tiles[0];
    CHECK(first.tile == tiles[0]);
    CHECK(first.head == 2);
    CHECK(first.wrong == 2);
    CHECK(first.worst.row == 63);
    CHECK(first.worst.dim == 5);
    CHECK(first.worst.computed == round_to(DType::fp16, worse));
    const TileBound bound =
        bound_tile(owned.operands(tiles[0], 2), static_cast<double>(owned.problem().scale), arithmetic);
    CHECK(first.worst.expected == bound.expected(63, 5));
    CHECK(first.worst.error == bound.error(63, 5));
    CHECK(first.worst.share == bound_share(DType::fp16, first.worst.computed, first.worst.expected, first.worst.error));
    CHECK(first.worst.share == comparison.largest_share);
    CHECK(comparison.tiles[1].tile == tiles[3]);
    CHECK(comparison.tiles[1].head == 1);
    CHECK(comparison.tiles[1].wrong == 1);
    // The rest are equally right, so the first of them in order comes next.
    CHECK(comparison.tiles[2].tile == tiles[0]);
    CHECK(comparison.tiles[2].head == 0);
    REQUIRE(comparison.shares.size() == 12);
    CHECK(comparison.shares[2] == first.worst.share);
    CHECK(comparison.shares[3 * 3 + 1] == comparison.tiles[1].worst.share);
}

TEST_CASE("a NaN in the inputs asks for a row that is not finite, and for nothing else") {
    OwnedProblem owned(DType::bf16, 1, 1, 64, 64, 13);
    const Tile tile = list_tiles(owned.problem())[0];
    const Arithmetic arithmetic = arithmetic_of(EmulatedStage{}, DType::bf16);
    TileMatrix q = owned.operands(tile, 0).q;
    run_oracle(owned.problem());
    const TileMatrix without = owned.output(tile, 0);
    q(7, 3) = kNan;
    owned.store(Operand::q, tile, 0, q);

    Comparison comparison = compare_forward(owned.problem(), arithmetic);
    CHECK(comparison.wrong == 64);
    CHECK(comparison.tiles[0].worst.row == 7);

    TileMatrix with = without;
    with.row(7).setConstant(kNan);
    owned.store(Operand::o, tile, 0, with);
    CHECK(compare_forward(owned.problem(), arithmetic).passed());
    with(8, 0) = kNan;
    owned.store(Operand::o, tile, 0, with);
    CHECK(compare_forward(owned.problem(), arithmetic).wrong == 1);
}

TEST_CASE("a problem without a tile has nothing to compare") {
    const OwnedProblem no_sequences(DType::fp16, 0, 2, 64, 64, 1);
    const OwnedProblem no_tokens(DType::fp16, 2, 2, 0, 64, 1);
    for (const OwnedProblem* owned : {&no_sequences, &no_tokens}) {
        const Comparison comparison = compare_forward(owned->problem(), arithmetic_of(EmulatedStage{}, DType::fp16));
        CHECK(comparison.passed());
        CHECK(comparison.elements == 0);
        CHECK(comparison.largest_share == 0);
        CHECK(comparison.tiles.empty());
        CHECK(comparison.shares.empty());
    }
}
