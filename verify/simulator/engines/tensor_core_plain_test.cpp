#include "verify/simulator/engines/tensor_core_plain.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "verify/simulator/isa/half.h"

/// The rules of the model, each with numbers worked out by hand.
namespace block_attention::simulator {

namespace {

constexpr auto kF32 = AccumulatorType::f32;
constexpr auto kF16 = AccumulatorType::f16;

double power(int exponent) { return std::ldexp(1.0, exponent); }

std::uint32_t f32(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }
std::uint32_t f16(double value) { return to_half(static_cast<float>(value)).bits; }

/// Exact for the numbers of these tests, subnormal ones of bf16 included.
std::uint32_t element(OperandType type, double value) {
    if (type == OperandType::f16) return f16(value);
    if (type == OperandType::bf16) return f32(value) >> 16;
    return f32(value);
}

using Products = std::vector<std::pair<double, double>>;

std::uint32_t step(OperandType operands, AccumulatorType accumulator, const Products& products, std::uint32_t c) {
    std::vector<std::uint32_t> a;
    std::vector<std::uint32_t> b;
    for (const auto& [x, y] : products) {
        a.push_back(element(operands, x));
        b.push_back(element(operands, y));
    }
    return tensor_core_step(operands, accumulator, a, b, c);
}

std::uint32_t bf16_step(const Products& products, double c = 0) {
    return step(OperandType::bf16, kF32, products, f32(c));
}
std::uint32_t f16_step(const Products& products, double c = 0) {
    return step(OperandType::f16, kF32, products, f32(c));
}
std::uint32_t step_to_f16(const Products& products, double c = 0) {
    return step(OperandType::f16, kF16, products, f16(c));
}

}  // namespace

TEST_CASE("Terms keep 25 bits below the largest exponent and lose the rest toward zero") {
    CHECK(f16_step({{1, 1}, {-1, 1}, {power(-12), power(-13)}}) == f32(power(-25)));
    CHECK(f16_step({{1, 1}, {-1, 1}, {power(-13), power(-13)}}) == 0);
    CHECK(f16_step({{1, 1}, {-1, 1}, {1.5 * power(-12), power(-13)}}) == f32(power(-25)));
    CHECK(f16_step({{1, 1}, {-1, 1}, {-1.5 * power(-12), power(-13)}}) == f32(-power(-25)));
    // Each is truncated alone, not their sum.
    CHECK(f16_step({{1, 1}, {-1, 1}, {power(-13), power(-13)}, {power(-13), power(-13)}}) == 0);
}

TEST_CASE("The exponent of a product is not normalised") {
    // 2.25 has the exponent 0 of its factors, so that 2^-25 stays.
    CHECK(f16_step({{1.5, 1.5}, {-1.5, 1.5}, {power(-12), power(-13)}}) == f32(power(-25)));
    // C = 2.25 has the exponent 1.
    CHECK(f16_step({{-1.5, 1.5}, {power(-12), power(-13)}}, 2.25) == 0);
    CHECK(f16_step({{-1.5, 1.5}, {power(-12), power(-12)}}, 2.25) == f32(power(-24)));
}

TEST_CASE("A subnormal element has the least exponent of its format") {
    // 2^-133 counts as 2^-126, the product 2^-7 as 2^0.
    CHECK(bf16_step({{power(-133), power(126)}, {-power(-133), power(126)}, {power(-12), power(-13)}}) ==
          f32(power(-25)));
    CHECK(bf16_step({{power(-133), power(126)}, {-power(-133), power(126)}, {power(-13), power(-13)}}) == 0);
    // 2^-24 counts as 2^-14.
    CHECK(f16_step({{power(-24), power(14)}, {-power(-24), power(14)}, {power(-13), power(-13)}}) == 0);
    CHECK(f16_step({{power(-24), power(13)}, {-power(-24), power(13)}, {power(-13), power(-13)}}) == f32(power(-26)));
    // An f16 as C as well: its 2^-24 lifts E from -21 to -14, where 2^-40 is lost.
    const Products products = {{-power(-12), power(-13)}, {power(-20), power(-20)}};
    CHECK(step_to_f16(products, power(-24)) == 0);
    CHECK(step_to_f16({{-power(-12), power(-13)}, {power(-19), power(-20)}}, power(-24)) == f16(power(-24)));
}

TEST_CASE("Zeros have no exponent") {
    CHECK(bf16_step({{0, power(127)}, {power(-60), power(-60)}}) == f32(power(-120)));
    CHECK(bf16_step({{power(-60), power(-60)}, {-0.0, power(127)}}, -0.0) == f32(power(-120)));
}

TEST_CASE("The common exponent is at least -133, with an f16 accumulator -21") {
    // 2^-149 is the least f32; anything taken from it leaves nothing.
    CHECK(bf16_step({{power(-75), power(-74)}, {-power(-80), power(-79)}}) == f32(power(-149)));
    CHECK(bf16_step({{power(-75), power(-74)}, {-power(-79), power(-79)}}) == 0);
    // 2^-25 is half the least f16; anything added makes it a whole.
    CHECK(step_to_f16({{power(-12), power(-13)}, {power(-23), power(-24)}}) == 0);
    CHECK(step_to_f16({{power(-12), power(-13)}, {power(-23), power(-23)}}) == f16(power(-24)));
}

TEST_CASE("Every zero is +0") {
    CHECK(bf16_step({{-1, 0}, {0, -1}}, -0.0) == 0);
    CHECK(bf16_step({{1, -1}, {1, 1}}) == 0);
    CHECK(bf16_step({}, -0.0) == 0);
    CHECK(bf16_step({{-power(-75), power(-75)}}) == 0);
    CHECK(step_to_f16({{-power(-13), power(-13)}}, -0.0) == 0);
    CHECK(step_to_f16({{-power(-12), power(-13)}}) == 0);
}

TEST_CASE("An f32 result is truncated toward zero") {
    CHECK(f16_step({{1, 1}, {power(-12), power(-12)}}) == f32(1));
    CHECK(f16_step({{1, 1}, {1.5 * power(-12), power(-11)}}) == f32(1 + power(-23)));
    CHECK(f16_step({{-1, 1}, {-1.5 * power(-12), power(-11)}}) == f32(-1 - power(-23)));
    CHECK(bf16_step({{power(-70), power(-60)}, {power(-75), power(-75)}}) == f32(power(-130)));
    CHECK(bf16_step({{-power(-70), power(-60)}, {power(-75), power(-75)}}) == f32(-power(-130) + power(-149)));
}

TEST_CASE("An f16 result is rounded to nearest even") {
    CHECK(step_to_f16({{2048, 1}, {1, 1}}) == f16(2048));
    CHECK(step_to_f16({{2048, 1}, {3, 1}}) == f16(2052));
    CHECK(step_to_f16({{2048, 1}, {1, 1}, {power(-12), 1}}) == f16(2050));
    CHECK(step_to_f16({{-2048, 1}, {-3, 1}, {power(-12), 1}}) == f16(-2050));
    CHECK(step_to_f16({{1, 15.9921875}}, 65504) == f16(65504));
    CHECK(step_to_f16({{1, 16}}, 65504) == 0x7C00);
    CHECK(step_to_f16({{-1, 16}}, -65504) == 0xFC00);
    CHECK(step_to_f16({{3 * power(-13), power(-12)}}) == f16(2 * power(-24)));
}

TEST_CASE("A sum is infinite only if it is too large itself") {
    CHECK(bf16_step({{power(100), power(28)}}) == 0x7F800000);
    CHECK(bf16_step({{-power(100), power(28)}}) == 0xFF800000);
    CHECK(bf16_step({{power(100), power(28)}, {-power(100), power(27)}}) == f32(power(127)));
    CHECK(bf16_step({{power(127), power(127)}, {-power(127), power(127)}}, 1) == 0);
    CHECK(bf16_step({{power(100), power(4)}}, 0x1.FFFFFEp127) == 0x7F800000);
    CHECK(bf16_step({{power(100), power(3)}}, 0x1.FFFFFEp127) == f32(0x1.FFFFFEp127));
}

TEST_CASE("NaN and infinities") {
    const double infinity = INFINITY;
    CHECK(bf16_step({{infinity, 2}}) == 0x7F800000);
    CHECK(bf16_step({{infinity, -2}, {1, 1}}, 5) == 0xFF800000);
    CHECK(bf16_step({{1, 1}}, -infinity) == 0xFF800000);
    CHECK(bf16_step({{infinity, 1}}, infinity) == 0x7F800000);
    CHECK(bf16_step({{infinity, 1}}, -infinity) == kNan32);
    CHECK(bf16_step({{infinity, 1}, {infinity, -1}}) == kNan32);
    CHECK(bf16_step({{infinity, 0}}) == kNan32);
    CHECK(bf16_step({{-0.0, -infinity}}, infinity) == kNan32);
    CHECK(bf16_step({{NAN, 0}}) == kNan32);
    CHECK(bf16_step({{1, 1}}, -NAN) == kNan32);
    CHECK(step_to_f16({{1, NAN}}) == kNan16);
    CHECK(step_to_f16({{infinity, 1}}) == 0x7C00);
    CHECK(step_to_f16({{1, 1}}, -infinity) == 0xFC00);
}

TEST_CASE("A tf32 has no more than its upper 19 bits") {
    const auto product = [](std::uint32_t a, std::uint32_t b) {
        return tensor_core_step(OperandType::tf32, kF32, std::vector{a}, std::vector{b}, 0);
    };
    CHECK(product(f32(1.5) | 0x1FFF, f32(1 + power(-10)) | 0x1000) == f32(1.5 * (1 + power(-10))));
    CHECK(product(0x1FFF, f32(2)) == 0);
    CHECK(product(0x2000, f32(power(20))) == f32(power(-116)));
    CHECK(product(0x7F800001, f32(1)) == 0x7F800000);
    CHECK(product(0x7F802000, f32(1)) == kNan32);
}

TEST_CASE("Small integers are summed exactly") {
    std::mt19937 random(1);
    for (int round = 0; round < 1000; ++round) {
        Products products;
        int sum = static_cast<int>(random() % 401) - 200;
        const int c = sum;
        for (int k = 0; k < 16; ++k) {
            const int a = static_cast<int>(random() % 17) - 8;
            const int b = static_cast<int>(random() % 17) - 8;
            products.emplace_back(a, b);
            sum += a * b;
        }
        CHECK(bf16_step(products, c) == f32(sum));
        CHECK(f16_step(products, c) == f32(sum));
        CHECK(step(OperandType::tf32, kF32, products, f32(c)) == f32(sum));
        CHECK(step_to_f16(products, c) == f16(sum));
    }
}

TEST_CASE("scale-input-d") {
    const auto scaled = [](AccumulatorType type, std::uint32_t bits, unsigned exponent) {
        const ScaledAccumulator result = scale_accumulator(type, bits, exponent);
        return std::pair(result.bits, result.exact);
    };
    CHECK(scaled(kF32, f32(-3), 15) == std::pair(f32(-3 * power(-15)), true));
    CHECK(scaled(kF32, f32(1.5), 0) == std::pair(f32(1.5), true));
    CHECK(scaled(kF32, f32(power(-126)), 15) == std::pair(f32(power(-141)), true));
    CHECK(scaled(kF32, 0x00800003, 1) == std::pair(0x00400001U, false));
    CHECK(scaled(kF32, 0x80000001, 1) == std::pair(0U, false));
    CHECK(scaled(kF32, 0x80000000, 1) == std::pair(0U, true));
    CHECK(scaled(kF32, 0xFF800000, 15) == std::pair(0xFF800000U, true));
    CHECK(scaled(kF32, 0xFF800001, 15) == std::pair(kNan32, true));
    CHECK(scaled(kF16, f16(-65504), 4) == std::pair(f16(-4094), true));
    CHECK(scaled(kF16, 0x0403, 1) == std::pair(0x0202U, false));
    CHECK(scaled(kF16, 0x7C00, 1) == std::pair(0x7C00U, true));
}

}  // namespace block_attention::simulator
