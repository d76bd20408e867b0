#include "reference/oracle.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <variant>
#include <vector>

#include "reference/test_problem.h"

namespace block_attention {
namespace {

TileMatrix random_matrix(Eigen::Index rows, Eigen::Index columns, unsigned seed, double spread = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, spread);
    TileMatrix matrix(rows, columns);
    for (double& value : matrix.reshaped()) value = normal(random);
    return matrix;
}

TileOperands random_tile(Eigen::Index rows, Eigen::Index dim, unsigned seed, double spread = 1) {
    return {random_matrix(rows, dim, seed, spread), random_matrix(rows, dim, seed + 1, spread),
            random_matrix(rows, dim, seed + 2)};
}

double largest_difference(const TileMatrix& a, const TileMatrix& b) { return (a - b).array().abs().maxCoeff(); }

TEST_CASE("by hand: two tokens, one dim") {
    // s = [[0, 0], [0, ln 3]]: row 0 averages, row 1 weighs 1 : 3.
    TileOperands tile{TileMatrix(2, 1), TileMatrix(2, 1), TileMatrix(2, 1)};
    tile.q << 0, 1;
    tile.k << 0, std::log(3.0);
    tile.v << 10, 20;
    const TileMatrix o = attention(tile, 1.0);
    CHECK(o(0, 0) == doctest::Approx(15).epsilon(1e-15));
    CHECK(o(1, 0) == doctest::Approx(17.5).epsilon(1e-15));
}

TEST_CASE("by hand: the scale multiplies the logits") {
    TileOperands tile{TileMatrix(2, 2), TileMatrix(2, 2), TileMatrix(2, 2)};
    tile.q << 1, 1, 2, 0;
    tile.k << 2, 0, 0, 2;                                     // s = [[2, 2], [4, 0]]
    tile.v << 1, 0, 0, 1;                                     // o is p itself
    const TileMatrix o = attention(tile, std::log(2.0) / 4);  // row 1: 2^1 : 2^0
    CHECK(o(0, 0) == doctest::Approx(0.5).epsilon(1e-15));
    CHECK(o(1, 0) == doctest::Approx(2.0 / 3).epsilon(1e-15));
    CHECK(o(1, 1) == doctest::Approx(1.0 / 3).epsilon(1e-15));
}

TEST_CASE("one token attends to itself, whatever its logit") {
    const TileOperands tile = random_tile(1, 16, 1, 1e3);
    CHECK(attention(tile, 7.0) == tile.v);
}

TEST_CASE("all-equal keys give the mean of the values") {
    TileOperands tile = random_tile(32, 8, 2);
    for (Eigen::Index j = 1; j < 32; ++j) tile.k.row(j) = tile.k.row(0);
    const TileMatrix mean = tile.v.colwise().mean().replicate(32, 1);
    CHECK(largest_difference(attention(tile, 1.0), mean) < 1e-14);
}

TEST_CASE("logits of +-1e4 pick the largest, without overflow") {
    TileOperands tile = random_tile(4, 4, 3);
    tile.q = 1e4 * TileMatrix::Identity(4, 4);
    tile.k = TileMatrix::Identity(4, 4);
    CHECK(attention(tile, 1.0) == tile.v);
    tile.q *= -1;  // the largest logit is now 0, three times a row
    const TileMatrix o = attention(tile, 1.0);
    for (Eigen::Index i = 0; i < 4; ++i) {
        const TileMatrix others = (tile.v.colwise().sum() - tile.v.row(i)) / 3;
        CHECK(largest_difference(o.row(i), others) < 1e-14);
    }
}

TEST_CASE("softmax ignores a shift of a row's logits") {
    TileOperands tile = random_tile(24, 8, 4);
    const TileMatrix before = attention(tile, 0.5);
    // k_j + c for every key shifts row i by scale * q_i . c.
    tile.k.rowwise() += random_matrix(1, 8, 9, 100).row(0);
    CHECK(largest_difference(attention(tile, 0.5), before) < 1e-11);
}

TEST_CASE("order of the keys does not matter, order of the queries carries over") {
    const TileOperands tile = random_tile(17, 8, 5);
    const TileMatrix o = attention(tile, 1.0);
    const TileOperands keys{tile.q, tile.k.colwise().reverse(), tile.v.colwise().reverse()};
    CHECK(largest_difference(attention(keys, 1.0), o) < 1e-14);
    const TileOperands queries{tile.q.colwise().reverse(), tile.k, tile.v};
    CHECK(largest_difference(attention(queries, 1.0), o.colwise().reverse()) < 1e-14);
}

/// Dense attention over a whole sequence, the block-diagonal mask applied as minus infinity, in long double with plain
/// loops: shares nothing with the oracle but the problem.
std::vector<long double> masked_dense(const TestProblem& test, std::int64_t sequence, std::int64_t head,
                                      std::int64_t first, std::int64_t tokens) {
    const Problem& problem = test.problem;
    std::vector<long double> o(static_cast<std::size_t>(tokens * problem.head_dim));
    for (std::int64_t i = 0; i < tokens; ++i) {
        std::vector<long double> logits(static_cast<std::size_t>(tokens));
        long double largest = -std::numeric_limits<long double>::infinity();
        for (std::int64_t j = 0; j < tokens; ++j) {
            long double& logit = logits[static_cast<std::size_t>(j)];
            for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                logit += static_cast<long double>(test.get(Operand::q, sequence, head, first + i, d)) *
                         static_cast<long double>(test.get(Operand::k, sequence, head, first + j, d));
            }
            logit *= static_cast<long double>(problem.scale);
            if (i / problem.block_size != j / problem.block_size) {
                logit = -std::numeric_limits<long double>::infinity();
            }
            largest = std::max(largest, logit);
        }
        long double sum = 0;
        for (std::int64_t j = 0; j < tokens; ++j) {
            const long double weight = std::exp(logits[static_cast<std::size_t>(j)] - largest);
            sum += weight;
            for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                o[static_cast<std::size_t>(i * problem.head_dim + d)] +=
                    weight * static_cast<long double>(test.get(Operand::v, sequence, head, first + j, d));
            }
        }
        for (std::int64_t d = 0; d < problem.head_dim; ++d)
            o[static_cast<std::size_t>(i * problem.head_dim + d)] /= sum;
    }
    return o;
}

void check_against_dense(const TestProblem& test) {
    const Problem& problem = test.problem;
    for (std::int64_t s = 0; s < problem.sequences; ++s) {
        const auto index = static_cast<std::size_t>(s);
        const std::int64_t first = problem.jagged() ? problem.offsets[index] : 0;
        const std::int64_t tokens = problem.jagged() ? problem.offsets[index + 1] - first : problem.tokens;
        for (std::int64_t h = 0; h < problem.heads; ++h) {
            const auto dense = masked_dense(test, s, h, first, tokens);
            for (std::int64_t i = 0; i < tokens; ++i) {
                for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                    const auto expected =
                        static_cast<double>(dense[static_cast<std::size_t>(i * problem.head_dim + d)]);
                    // O is stored as float: half a unit in the last place, and the double's own error.
                    const double unit = std::ldexp(1.0, std::ilogb(std::abs(expected) + 1e-30) - 23);
                    REQUIRE(std::abs(test.get(Operand::o, s, h, first + i, d) - expected) <= 0.5000001 * unit + 1e-13);
                }
            }
        }
    }
}

TEST_CASE("equals dense attention under the block-diagonal mask") {
    SUBCASE("uniform, with tails") {
        TestProblem test(DType::fp32, 2, 2, 37, 16, 8);
        test.fill_normal(1);
        run_oracle(test.problem);
        check_against_dense(test);
    }
    SUBCASE("jagged, with one-token tails, one token and empty sequences") {
        TestProblem test(DType::fp32, {0, 0, 9, 10, 26, 26}, 3, 16, 8);
        test.fill_normal(2, 3);
        run_oracle(test.problem);
        check_against_dense(test);
    }
    SUBCASE("a tile longer than its sequence") {
        TestProblem test(DType::fp32, 1, 1, 5, 4, 64);
        test.fill_normal(3);
        run_oracle(test.problem);
        check_against_dense(test);
    }
}

TEST_CASE("a tile's result is independent of every other tile") {
    TestProblem test(DType::bf16, {0, 20, 33}, 2, 8, 8);
    test.fill_normal(4);
    run_oracle(test.problem);
    std::vector<double> before;
    const auto collect = [&](std::int64_t t) {
        std::vector<double> row;
        for (std::int64_t h = 0; h < 2; ++h) {
            for (std::int64_t d = 0; d < 8; ++d) row.push_back(test.get(Operand::o, 0, h, t, d));
        }
        return row;
    };
    std::vector<std::vector<double>> rows;
    for (std::int64_t t = 0; t < 33; ++t) rows.push_back(collect(t));

    // NaN in all of tile [8, 16): it must stay there.
    for (const TensorView& view : {test.problem.q, test.problem.k, test.problem.v}) {
        for (std::int64_t i = 8 * 16; i < 16 * 16; ++i) test.set(view, i, std::nan(""));
    }
    run_oracle(test.problem);
    for (std::int64_t t = 0; t < 33; ++t) {
        if (t >= 8 && t < 16) {
            for (const double value : collect(t)) CHECK(std::isnan(value));
        } else {
            CHECK(collect(t) == rows[static_cast<std::size_t>(t)]);
        }
    }
}

TEST_CASE("rows outside every tile are not written") {
    TestProblem test(DType::fp32, {0, 5, 12}, 1, 4, 4);
    test.fill_normal(5);
    test.problem.offsets = {0, 5, 9};
    test.fill(Operand::o, -77);
    run_oracle(test.problem);
    for (std::int64_t t = 9; t < 12; ++t) CHECK(test.get(Operand::o, 0, 0, t, 0) == -77);
    CHECK(test.get(Operand::o, 0, 0, 8, 0) != -77);
}

TEST_CASE("each element of O is rounded once, from double") {
    TestProblem test(DType::fp16, 1, 1, 2, 1, 2);
    // Equal weights: O = (1 + (1 + 2^-10)) / 2 = 1 + 2^-11, a tie that goes to the even neighbour 1.
    test.fill(Operand::q, 0);
    test.fill(Operand::k, 0);
    test.set(test.problem.v, 0, 1);
    test.set(test.problem.v, 1, 1 + 0x1p-10);
    run_oracle(test.problem);
    CHECK(test.get(Operand::o, 0, 0, 0, 0) == 1);
}

TEST_CASE("as a stage it serves forward problems, and launches nothing") {
    TestProblem test(DType::fp16, 1, 1, 4, 4, 4);
    CHECK(std::get<Plan>(oracle_stage().plan(test.problem)).launches.empty());
    test.problem.pass = Pass::backward;
    CHECK(std::get<Refusal>(oracle_stage().plan(test.problem)).reason == "the oracle computes the forward pass only");
    test.problem.pass = Pass::forward;
    test.problem.rotary = TensorView{};
    CHECK(std::holds_alternative<Refusal>(oracle_stage().plan(test.problem)));
}

}  // namespace
}  // namespace block_attention
