#include "verify/cases/fill.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "reference/oracle.h"
#include "reference/tiles.h"
#include "verify/cases/load.h"
#include "verify/cases/random.h"

namespace block_attention {
namespace {

Case small_case(Fill fill) {
    Case test_case;
    test_case.batch = 2;
    test_case.heads = 2;
    test_case.tokens = 100;
    test_case.dim = 32;
    test_case.block = 32;
    test_case.fill = fill;
    return test_case;
}

std::vector<double> elements(const Tensors& tensors, Operand operand) {
    const Problem& problem = tensors.problem();
    std::vector<double> values;
    for (const Tile& tile : list_tiles(problem)) {
        for (std::int64_t h = 0; h < problem.heads; ++h) {
            for (std::int64_t t = 0; t < tile.length; ++t) {
                for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                    values.push_back(
                        load_element(problem.dtype, problem.view(operand).at(tile.sequence, h, tile.first_row + t, d)));
                }
            }
        }
    }
    return values;
}

/// All logits of all tiles and heads.
std::vector<double> logits(const Tensors& tensors) {
    const Problem& problem = tensors.problem();
    std::vector<double> values;
    for (const Tile& tile : list_tiles(problem)) {
        for (std::int64_t h = 0; h < problem.heads; ++h) {
            const TileOperands operands = load_tile(problem, tile, h);
            const TileMatrix s = static_cast<double>(problem.scale) * operands.q * operands.k.transpose();
            values.insert(values.end(), s.data(), s.data() + s.size());
        }
    }
    return values;
}

bool all(const std::vector<double>& values, const std::function<bool(double)>& test) {
    return std::all_of(values.begin(), values.end(), test);
}

double mean_power(const std::vector<double>& values, int power) {
    double sum = 0;
    for (const double value : values) sum += std::pow(value, power);
    return sum / static_cast<double>(values.size());
}

TEST_CASE("normal numbers have the moments of normal numbers") {
    const CounterRandom random(1, 2);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 200'000; ++i) values.push_back(static_cast<double>(random.normal(i)));
    CHECK(std::abs(mean_power(values, 1)) < 0.01);
    CHECK(std::abs(mean_power(values, 2) - 1) < 0.01);
    CHECK(std::abs(mean_power(values, 3)) < 0.03);
    CHECK(mean_power(values, 4) > 2.8);  // of a normal number 3, of a sum of eight uniform ones 2.85
    CHECK(mean_power(values, 4) < 3.0);
}

TEST_CASE("random numbers depend on seed, stream and index") {
    CHECK(CounterRandom(1, 2).bits(3) == CounterRandom(1, 2).bits(3));
    CHECK(CounterRandom(1, 2).bits(3) != CounterRandom(1, 2).bits(4));
    CHECK(CounterRandom(1, 2).bits(3) != CounterRandom(1, 3).bits(3));
    CHECK(CounterRandom(1, 2).bits(3) != CounterRandom(2, 2).bits(3));
    // The numbers that seed 1 has always had: a change makes every printed result stale.
    CHECK(CounterRandom(1, 0).bits(0) == 736442933886495122U);
}

TEST_CASE("a value does not depend on the layout") {
    const auto reference = elements(load_case(small_case(Fill::normal), 7), Operand::k);
    for (const Layout layout : {Layout::bshd, Layout::padded, Layout::every_second, Layout::packed_qkv,
                                Layout::transposed, Layout::interleaved, Layout::unaligned}) {
        Case test_case = small_case(Fill::normal);
        test_case.layout = layout;
        CHECK(elements(load_case(test_case, 7), Operand::k) == reference);
    }
    CHECK(elements(load_case(small_case(Fill::normal), 8), Operand::k) != reference);
    CHECK(elements(load_case(small_case(Fill::normal), 7), Operand::q) != reference);
}

TEST_CASE("shared keys hold what the first head holds") {
    Case test_case = small_case(Fill::normal);
    test_case.layout = Layout::shared_heads;
    const Tensors shared = load_case(test_case, 7);
    const Tensors apart = load_case(small_case(Fill::normal), 7);
    const Problem& a = shared.problem();
    const Problem& b = apart.problem();
    CHECK(load_element(a.dtype, a.k.at(1, 1, 5, 6)) == load_element(b.dtype, b.k.at(1, 0, 5, 6)));
}

TEST_CASE("integers are integers of -3 to 3, and all of them occur") {
    const auto values = elements(load_case(small_case(Fill::integers), 1), Operand::v);
    CHECK(all(values, [](double x) { return x == std::round(x) && std::abs(x) <= 3; }));
    for (int i = -3; i <= 3; ++i) CHECK(std::count(values.begin(), values.end(), i) > 0);
}

TEST_CASE("attention spreads the logits, normal leaves them near 1") {
    CHECK(mean_power(logits(load_case(small_case(Fill::normal), 1)), 2) == doctest::Approx(1).epsilon(0.15));
    CHECK(mean_power(logits(load_case(small_case(Fill::attention), 1)), 2) == doctest::Approx(16).epsilon(0.15));
}

TEST_CASE("all rows are equal") {
    const auto values = elements(load_case(small_case(Fill::equal_rows), 1), Operand::v);
    for (std::size_t i = 32; i < values.size(); ++i) REQUIRE(values[i] == values[i - 32]);
    CHECK(values[0] != values[1]);
}

TEST_CASE("extreme logits lie near 10^4, of either sign") {
    const auto values = logits(load_case(small_case(Fill::extreme_logits), 1));
    CHECK(all(values, [](double x) { return std::abs(x) > 9e3 && std::abs(x) < 1.1e4; }));
    CHECK_FALSE(all(values, [](double x) { return x > 0; }));
    CHECK_FALSE(all(values, [](double x) { return x < 0; }));
}

TEST_CASE("huge keys are few and huge") {
    const auto values = elements(load_case(small_case(Fill::huge_keys), 1), Operand::k);
    const auto large = std::count_if(values.begin(), values.end(), [](double x) { return std::abs(x) > 20; });
    CHECK(large > 0);
    CHECK(large < static_cast<std::ptrdiff_t>(values.size() / 20));
}

TEST_CASE("subnormals are below the smallest normal number of each type and not zero") {
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        Case test_case = small_case(Fill::subnormal);
        test_case.dtype = dtype;
        const double smallest_normal = std::ldexp(1.0, format_of(dtype).min_exponent);
        for (const Operand operand : {Operand::q, Operand::v}) {
            CHECK(all(elements(load_case(test_case, 1), operand),
                      [&](double x) { return x != 0 && std::abs(x) < smallest_normal; }));
        }
    }
}

TEST_CASE("large values are finite and near the largest number") {
    const auto values = elements(load_case(small_case(Fill::large_values), 1), Operand::v);
    CHECK(all(values, [](double x) { return std::abs(x) >= 32000 && std::abs(x) <= 65504; }));
    Case test_case = small_case(Fill::large_values);
    test_case.dtype = DType::fp32;
    CHECK(all(elements(load_case(test_case, 1), Operand::v),
              [](double x) { return std::abs(x) > 1e36 && std::isfinite(static_cast<float>(32 * x)); }));
}

TEST_CASE("zeros are zeros of either sign") {
    const auto values = elements(load_case(small_case(Fill::zeros), 1), Operand::q);
    CHECK(all(values, [](double x) { return x == 0; }));
    const auto negative = std::count_if(values.begin(), values.end(), [](double x) { return std::signbit(x); });
    CHECK(negative > 0);
    CHECK(negative < static_cast<std::ptrdiff_t>(values.size()));
}

TEST_CASE("one tile of one head holds the non-finite values") {
    for (const bool jagged : {false, true}) {
        Case test_case = small_case(Fill::non_finite);
        if (jagged) test_case.lengths = {40, 0, 100};
        if (jagged) test_case.layout = Layout::thd;
        const Tensors tensors = load_case(test_case, 1);
        int poisoned = 0;
        for (const Tile& tile : list_tiles(tensors.problem())) {
            for (std::int64_t h = 0; h < 2; ++h) {
                const TileOperands operands = load_tile(tensors.problem(), tile, h);
                const bool finite = operands.k.allFinite() && operands.v.allFinite();
                if (!finite) ++poisoned;
                CHECK(operands.q.allFinite());
            }
        }
        CHECK(poisoned == 1);
    }
}

}  // namespace
}  // namespace block_attention
