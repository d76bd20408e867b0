#include "verify/bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "verify/emulated_stage.h"

using namespace block_attention;

namespace {

using Index = Eigen::Index;

constexpr std::array kDTypes{DType::fp16, DType::bf16, DType::fp32};
constexpr std::array kTensorCoreDTypes{DType::fp16, DType::bf16};
constexpr std::array<Index, 2> kDims{64, 128};

/// The largest |computed - expected| as a share of the bound, nothing rounded to the output's type.
double largest_share(const TileBound& bound, const TileMatrix& computed) {
    REQUIRE(bound.error.allFinite());
    REQUIRE(bound.error.minCoeff() > 0);
    return ((computed - bound.expected).array().abs() / bound.error.array()).maxCoeff();
}

double largest_share(const EmulatedStage& stage, DType dtype, const TileOperands& tile, float scale) {
    return largest_share(bound_tile(tile, static_cast<double>(scale), arithmetic_of(stage, dtype)),
                         emulate(stage, dtype, tile, scale));
}

/// A stage of FMA chains whose every rounding is as large as it may be and goes the way that moves element (row, dim)
/// furthest from `expected`. In double, so that the roundings are those and no others.
double worst_case(const TileOperands& tile, double scale, const Arithmetic& arithmetic, const TileMatrix& expected,
                  Index row, Index dim) {
    constexpr double kUnit = 0x1p-24;
    const auto pushed = [](double x, double direction, double t) { return x + std::copysign(x * t, direction); };
    const double goal = std::copysign(1.0, expected(row, dim));  // away from 0, so that a smaller row sum helps
    const Index keys = tile.k.rows();
    Eigen::ArrayXd x(keys);
    Eigen::ArrayXd direction(keys);
    for (Index j = 0; j < keys; ++j) {
        direction(j) = goal * std::copysign(1.0, tile.v(j, dim) - expected(row, dim));
        double sum = 0;
        for (Index d = 0; d < tile.q.cols(); ++d) {
            sum = pushed(sum + tile.q(row, d) * tile.k(j, d), direction(j) * scale, arithmetic.qk.step_roundoff);
        }
        x(j) = pushed(scale * sum, direction(j), kUnit * arithmetic.logit_roundings);
    }
    const double max = x.maxCoeff();
    double weighted = 0;
    double sum = 0;
    for (Index j = 0; j < keys; ++j) {
        const double exponent = pushed(x(j) - max, direction(j), kUnit * arithmetic.exponent_roundings);
        double added = pushed(std::exp(exponent), direction(j), arithmetic.exp2_relative_error);
        double multiplied = pushed(added, goal * tile.v(j, dim), arithmetic.p_roundoff);
        if (arithmetic.sum_of_rounded_p) added = multiplied = pushed(added, direction(j), arithmetic.p_roundoff);
        weighted = pushed(weighted + multiplied * tile.v(j, dim), goal, arithmetic.pv.step_roundoff);
        sum = j == 0 ? added : pushed(sum + added, -1, kUnit);
    }
    return pushed(weighted / sum, goal, kUnit * arithmetic.division_roundings);
}

constexpr const char* kLargeLogits = "logits of 1e4";

/// Tiles that stress different terms of the bound.
struct NamedTile {
    std::string name;
    TileOperands operands;
};

std::vector<NamedTile> stress_tiles(DType dtype, Index length, Index dim, std::uint64_t seed) {
    const TileOperands normal = random_tile(dtype, length, dim, 1, seed);
    const auto rounded = [dtype](double x) { return round_to(dtype, x); };
    std::vector<NamedTile> tiles{{"normal", normal},
                                 {"logits of 1e-3", random_tile(dtype, length, dim, 1e-3, seed)},
                                 {"logits of 30", random_tile(dtype, length, dim, 30, seed)},
                                 {kLargeLogits, random_tile(dtype, length, dim, 1e4, seed)}};
    tiles.push_back({"V far from 0", normal});
    tiles.back().operands.v = (normal.v.array() / 16 + 100).matrix().unaryExpr(rounded);
    tiles.push_back({"rows of V that cancel", normal});
    for (Index j = 1; j < length; j += 2) tiles.back().operands.v.row(j) = -tiles.back().operands.v.row(j - 1);
    tiles.push_back({"dot products that cancel", normal});
    tiles.back().operands.q.rightCols(dim / 2) = 30 * normal.q.leftCols(dim / 2).unaryExpr(rounded);
    tiles.back().operands.q.leftCols(dim / 2) = tiles.back().operands.q.rightCols(dim / 2);
    tiles.back().operands.k.rightCols(dim / 2) = -normal.k.leftCols(dim / 2);
    tiles.push_back({"all rows equal", normal});
    for (TileMatrix* rows : {&tiles.back().operands.q, &tiles.back().operands.k, &tiles.back().operands.v}) {
        rows->rowwise() = rows->row(0).eval();
    }
    tiles.push_back({"dims of many sizes", normal});
    for (Index d = 0; d < dim; ++d) {
        const double factor = std::ldexp(1.0, static_cast<int>(d % 21) - 10);
        tiles.back().operands.q.col(d) *= factor;
        tiles.back().operands.k.col(d) *= 0.25 / factor;
        tiles.back().operands.v.col(d) *= factor;
    }
    for (NamedTile& tile : tiles) {
        for (TileMatrix* rows : {&tile.operands.q, &tile.operands.k, &tile.operands.v}) {
            *rows = rows->unaryExpr(rounded);
        }
    }
    return tiles;
}

float libm_exp2(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }

/// Restores the rounding to nearest.
struct RoundingMode {
    explicit RoundingMode(int mode) { std::fesetround(mode); }
    ~RoundingMode() { std::fesetround(FE_TONEAREST); }
    RoundingMode(const RoundingMode&) = delete;
    RoundingMode& operator=(const RoundingMode&) = delete;
};

}  // namespace

TEST_CASE("one key: the output is V, and only the sum's product and the division round") {
    const TileOperands tile = random_tile(DType::fp32, 1, 64, 1, 1);
    const TileBound bound = bound_tile(tile, 0.125, arithmetic_of(EmulatedStage{}, DType::fp32));
    for (Index d = 0; d < 64; ++d) {
        CHECK(bound.expected(0, d) == tile.v(0, d));
        CHECK(bound.error(0, d) / std::abs(tile.v(0, d)) / 0x1p-24 == doctest::Approx(2).epsilon(1e-5));
    }
}

TEST_CASE("two equal logits: the bound by hand") {
    TileOperands tile{TileMatrix::Zero(2, 1), TileMatrix::Ones(2, 1), TileMatrix::Ones(2, 1)};
    tile.v(1, 0) = -1;
    const double u = 0x1p-24;
    Arithmetic arithmetic{.qk = {.terms_per_step = 1, .step_roundoff = u},
                          .pv = {.terms_per_step = 1, .step_roundoff = u},
                          .exp2_relative_error = 16 * u,
                          .division_roundings = 4};
    const auto error_is = [&](double units) {
        return bound_tile(tile, 1, arithmetic).error(0, 0) / u == doctest::Approx(units).epsilon(1e-4);
    };
    // Both weights are 1, V is 1 and -1, and O is 0: relative errors e of both weights move O by e, and those of the
    // sum and the quotient do nothing. Of the product's partial sums, 1 and 0, half a unit is left by the division
    // by 2.
    CHECK(error_is(16 + 0.5));

    SUBCASE("P rounded for the product alone") {
        arithmetic.p_roundoff = 64 * u;
        CHECK(error_is(16 + 64 + 0.5));
        tile.v(1, 0) = 1;  // O is 1, whatever the weights, so long as the sum adds the same ones
        CHECK(error_is(64 + (1 + 2) / 2.0 + 1 + 4));
    }
    SUBCASE("P rounded for the product and the sum") {
        arithmetic.p_roundoff = 64 * u;
        arithmetic.sum_of_rounded_p = true;
        CHECK(error_is(16 + 64 + 0.5));
        tile.v(1, 0) = 1;
        CHECK(error_is((1 + 2) / 2.0 + 1 + 4));
    }
    SUBCASE("alignment counts once a term and once for the incoming sum") {
        arithmetic.pv.align_roundoff = u;  // largest terms 1 and 1, two terms in each of two steps
        CHECK(error_is(16 + 0.5 + (2 + 2) / 2.0));
        arithmetic.pv.terms_per_step = 2;  // one step, partial sum 0, three terms
        CHECK(error_is(16 + 3 / 2.0));
        arithmetic.pv.smallest_normal = 1;  // the smallest normal is added to both factors: largest term 2 * 2
        CHECK(error_is(16 + 3 * 4 / 2.0));
    }
    SUBCASE("absolute errors of the exponential and of P") {
        arithmetic.exp2_absolute_error = 32 * u;
        CHECK(error_is(16 + 32 + 0.5));
        arithmetic.p_roundoff = 1e-30;
        arithmetic.p_underflow = 8 * u;
        CHECK(error_is(16 + 32 + 8 + 0.5));
        arithmetic.sum_of_rounded_p = true;
        CHECK(error_is(16 + 32 + 8 + 0.5));
    }
    SUBCASE("errors that are not small") {
        arithmetic.exp2_relative_error = 0.5;  // weights of 1/2 to 2: each off by 1, their sum as small as 1
        CHECK(error_is(2 / u));
        arithmetic.pv.step_roundoff = 0x1p-10;  // partial sums as large as 1 + 2 and 0 + 2, grown over two steps
        CHECK(error_is((2 + 0x1p-10 * (1 + 2 + 0 + 2) / std::pow(1 - 0x1p-10, 2)) / u));
        arithmetic.exp2_relative_error = 0.75;  // weights of 1/4 to 4
        arithmetic.pv.step_roundoff = u;
        CHECK(error_is((4 + 4) / 0.5 / u));
    }
    SUBCASE("errors of the logits") {
        tile.q.setOnes();
        tile.k(1, 0) = -1;
        tile.k(0, 0) = 1;
        arithmetic.exp2_relative_error = 0;
        // Logits 1 and -1; one step of one term, so each is off by one unit. O = tanh(1), and a weight's error e moves
        // it by e * weight * |V - O|, in all 2 w (1 - w) e = e / 2 / cosh^2(1) from either side.
        const double per_unit = 0.5 / std::pow(std::cosh(1.0), 2);
        const double rest = std::abs(bound_tile(tile, 1, arithmetic).expected(0, 0)) * (1 + 4);
        const double p = std::exp(-2.0);
        const double partials = (1 + (1 - p)) / (1 + p);
        CHECK(error_is(2 * per_unit + partials + rest));
        arithmetic.logit_roundings = 3;
        CHECK(error_is(2 * 4 * per_unit + partials + rest));
        arithmetic.exponent_roundings = 5;  // of the exponents 0 and -2
        CHECK(error_is((2 * 4 + 2 * 5) * per_unit + partials + rest));

        // Large errors: the exponents' distance to the maximum, 0 and 2, is off by that of both logits.
        arithmetic.logit_roundings = arithmetic.exponent_roundings = 0x1p20;
        const double many = std::expm1(-0x1p20 * std::log1p(-u));
        const double o = bound_tile(tile, 1, arithmetic).expected(0, 0);
        const double first = many + many * (0 + 2 * many);
        const double second = many + many * (2 + 2 * many);
        CHECK(error_is((std::expm1(first) * (1 - o) + p * std::expm1(second) * (1 + o)) /
                       (std::exp(-first) + p * std::exp(-second)) / u));
    }
}

TEST_CASE("the correct fp32 stage stays within the bound") {
    double worst = 0;
    for (const DType dtype : kDTypes) {
        for (const Index dim : kDims) {
            for (const Index length : {1, 2, 17, 64}) {
                for (const NamedTile& tile : stress_tiles(dtype, length, dim, 7)) {
                    const double share = largest_share(EmulatedStage{}, dtype, tile.operands, default_scale(dim));
                    INFO(name_of(dtype), ", dim ", dim, ", length ", length, ", ", tile.name);
                    CHECK(share < 1);
                    worst = std::max(worst, share);
                }
            }
        }
    }
    MESSAGE("largest share before O is rounded: ", worst);
}

TEST_CASE("the worst roundings that the arithmetic allows come close to the bound, and stay within") {
    // Each row makes one error dominate; the first is the naive stage.
    const ProductArithmetic chain{.terms_per_step = 1, .step_roundoff = 0x1p-24};
    const ProductArithmetic coarse{.terms_per_step = 1, .step_roundoff = 0x1p-14};
    struct Row {
        std::string name;
        Arithmetic arithmetic;
    };
    const std::vector<Row> rows{
        {"naive", arithmetic_of(EmulatedStage{}, DType::fp32)},
        {"QK", {.qk = coarse, .pv = chain}},
        {"PV", {.qk = chain, .pv = coarse}},
        {"logit", {.qk = chain, .pv = chain, .logit_roundings = 1000}},
        {"exponent", {.qk = chain, .pv = chain, .exponent_roundings = 1000}},
        {"exp2", {.qk = chain, .pv = chain, .exp2_relative_error = 0x1p-10}},
        {"P", {.qk = chain, .pv = chain, .p_roundoff = 0x1p-8}},
        {"P and sum", {.qk = chain, .pv = chain, .p_roundoff = 0x1p-8, .sum_of_rounded_p = true}},
        {"division", {.qk = chain, .pv = chain, .division_roundings = 1000}},
    };
    const Index dim = 64;
    const double scale = -0.125;  // negative, so that a logit and its dot product are pushed opposite ways
    for (const Row& row : rows) {
        double least = 1;
        double most = 0;
        for (const Index length : {2, 17, 64}) {
            for (const NamedTile& tile : stress_tiles(DType::fp32, length, dim, 11)) {
                const TileBound bound = bound_tile(tile.operands, scale, row.arithmetic);
                double largest = 0;
                for (Index i = 0; i < length; i += 5) {
                    for (const Index d : {Index{0}, dim - 1}) {
                        const double computed = worst_case(tile.operands, scale, row.arithmetic, bound.expected, i, d);
                        largest = std::max(largest, std::abs(computed - bound.expected(i, d)) / bound.error(i, d));
                    }
                }
                INFO(row.name, ", length ", length, ", ", tile.name);
                CHECK(largest <= 1);
                // Where the errors of large logits, as 1e4 * 1000 roundings, come near 1, the bound grows like
                // exp(error).
                if (tile.name == kLargeLogits && row.name != "naive") continue;
                CHECK(largest > 0.5);
                least = std::min(least, largest);
                most = std::max(most, largest);
            }
        }
        MESSAGE("worst roundings, mostly of ", row.name, ": ", least, " to ", most, " of the bound");
    }
}

TEST_CASE("roundings up, down and toward zero stay within a bound of twice the roundoff") {
    const EmulatedStage stage{.exp2 = libm_exp2};
    double worst = 0;
    for (const Index length : {17, 64}) {
        for (const NamedTile& tile : stress_tiles(DType::fp32, length, 64, 13)) {
            const ProductArithmetic chain{.terms_per_step = 1, .step_roundoff = 0x1p-23};
            // The row sum's roundings are doubled by counting them once more beside the division's two.
            const Arithmetic arithmetic{.qk = chain,
                                        .pv = chain,
                                        .logit_roundings = 2,
                                        .exponent_roundings = 5,  // log2(e) is still the nearest float
                                        .exp2_relative_error = 0x1p-23 + 0x1p-50,
                                        .exp2_absolute_error = 0x1p-126,
                                        .division_roundings = 2 + static_cast<double>(length - 1)};
            const TileBound bound = bound_tile(tile.operands, 0.125, arithmetic);
            for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
                TileMatrix computed;
                {
                    const RoundingMode rounding(mode);
                    computed = emulate(stage, DType::fp32, tile.operands, 0.125F);
                }
                const double share = largest_share(bound, computed);
                INFO("mode ", mode, ", length ", length, ", ", tile.name);
                CHECK(share < 1);
                worst = std::max(worst, share);
            }
        }
    }
    MESSAGE("directed roundings: largest share ", worst);
}

TEST_CASE("tensor-core arithmetic stays within its bound") {
    for (const bool sum_of_rounded_p : {false, true}) {
        double worst = 0;
        for (const DType dtype : kTensorCoreDTypes) {
            const EmulatedStage stage{.qk = Products::tensor_core,
                                      .pv = Products::tensor_core,
                                      .p_type = dtype,
                                      .sum_of_rounded_p = sum_of_rounded_p};
            for (const Index length : {1, 17, 64}) {
                const Index dim = length == 64 ? 128 : 64;
                for (const NamedTile& tile : stress_tiles(dtype, length, dim, 17)) {
                    const double share = largest_share(stage, dtype, tile.operands, default_scale(dim));
                    INFO(name_of(dtype), ", dim ", dim, ", length ", length, ", ", tile.name);
                    CHECK(share < 1);
                    worst = std::max(worst, share);
                }
            }
        }
        MESSAGE("tensor cores, sum of rounded P ", sum_of_rounded_p, ": largest share ", worst);
    }
}

TEST_CASE("a subnormal factor aligns a tensor core's terms as if it were the smallest normal") {
    // 2^-24 * 8 has the exponent of 2^-14 * 8, so the other fifteen products, 2^-28 and a bit, lose what is below
    // 2^-36. The scale makes that visible in O.
    const Index dim = 16;
    TileOperands tile = random_tile(DType::fp16, 17, dim, 1, 19);
    for (Index i = 0; i < 17; ++i) {
        for (Index d = 0; d < dim; ++d) {
            tile.q(i, d) = 0x1p-14 * (1 + 0x1p-10 * static_cast<double>((31 * i + 17 * d) % 1024));
            tile.k(i, d) = 0x1p-14 * (1 + 0x1p-10 * static_cast<double>((71 * i + 37 * d) % 1024));
        }
        tile.q(i, 0) = 0x1p-24;
        tile.k(i, 0) = 8;
    }
    const EmulatedStage stage{.qk = Products::tensor_core};
    const float scale = 0x1p22F;
    CHECK(largest_share(stage, DType::fp16, tile, scale) < 1);

    Arithmetic without = arithmetic_of(stage, DType::fp16);
    without.qk.smallest_normal = 0;
    CHECK(largest_share(bound_tile(tile, static_cast<double>(scale), without),
                        emulate(stage, DType::fp16, tile, scale)) > 1);
}

TEST_CASE("what the oracle itself loses in double is in the bound") {
    // Logits near 1e12 whose differences are near 1: their last place in double is 2^-13. long double (64 or 113 bits)
    // stands for exact arithmetic here.
    using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
    TileOperands tile = random_tile(DType::fp32, 64, 64, 1, 29);
    tile.k.leftCols(32).rowwise() = 1e12 * tile.k.row(0).head(32);
    const Exact logits = tile.q.cast<long double>() * tile.k.cast<long double>().transpose() * 0.125L;
    const Exact weights = (logits.colwise() - logits.rowwise().maxCoeff()).array().exp();
    const Exact exact = (weights * tile.v.cast<long double>()).array().colwise() / weights.rowwise().sum().array();
    const TileBound bound = bound_tile(tile, 0.125, {.qk = {}, .pv = {}, .division_roundings = 0});
    const double share = largest_share(bound, exact.cast<double>());
    MESSAGE("the oracle's own error: largest share ", share);
    CHECK(share < 1);
    CHECK(share > 0);
}

TEST_CASE("what fp32 loses below its normal numbers is in the bound") {
    SUBCASE("dot products") {
        // Products just above and just below 2^-150, half the smallest fp32 number: a chain of FMAs takes them for
        // 2^-149 and for 0. The scale turns the difference into a logit of 2^-17, and V makes O show it.
        const Index keys = 64;
        TileOperands tile{TileMatrix::Constant(keys, 64, 0x1p-75), TileMatrix::Constant(keys, 64, 0x1.02p-75),
                          TileMatrix::Ones(keys, 1).replicate(1, 64)};
        for (Index j = 1; j < keys; j += 2) {
            tile.k.row(j).setConstant(0x1.fcp-76);
            tile.v.row(j) *= -1;
        }
        const double share = largest_share(EmulatedStage{}, DType::fp32, tile, 0x1p127F);
        CHECK(share > 1e-3);
        CHECK(share < 1);
    }
    SUBCASE("outputs") {
        TileOperands tile = random_tile(DType::fp32, 17, 64, 1, 31);
        tile.v = (tile.v * 0x1p-147).unaryExpr([](double x) { return round_to(DType::fp32, x); });
        const double share = largest_share(EmulatedStage{}, DType::fp32, tile, 0.125F);
        CHECK(share > 1e-3);
        CHECK(share < 1);
    }
}

TEST_CASE("numbers that are not finite") {
    const double infinity = std::numeric_limits<double>::infinity();
    const Arithmetic arithmetic = arithmetic_of(EmulatedStage{}, DType::fp32);
    const TileOperands tile = random_tile(DType::fp32, 17, 64, 1, 23);

    SUBCASE("a NaN in Q makes its row NaN and no other") {
        TileOperands bad = tile;
        bad.q(3, 5) = std::numeric_limits<double>::quiet_NaN();
        const TileBound bound = bound_tile(bad, 0.125, arithmetic);
        for (Index i = 0; i < 17; ++i) {
            CHECK(bound.expected.row(i).array().isNaN().all() == (i == 3));
            CHECK(bound.expected.row(i).allFinite() == (i != 3));
            if (i != 3) CHECK(bound.error.row(i).allFinite());
        }
    }
    SUBCASE("a logit of minus infinity drops its key, for the bound as well") {
        TileOperands bad = tile;
        bad.q.col(0) = bad.q.col(0).cwiseAbs();
        TileOperands shorter = bad;
        bad.k.row(16).setZero();
        bad.k(16, 0) = -infinity;
        shorter.k.conservativeResize(16, Eigen::NoChange);
        shorter.v.conservativeResize(16, Eigen::NoChange);
        bad.q(0, 0) = 1;
        shorter.q(0, 0) = 1;
        const TileBound bound = bound_tile(bad, 0.125, arithmetic);
        const TileMatrix emulated = emulate(EmulatedStage{}, DType::fp32, bad, 0.125F);
        CHECK((bound.expected - attention(shorter, 0.125)).cwiseAbs().maxCoeff() < 1e-14);
        CHECK(largest_share(bound, emulated) < 1);
    }
}
