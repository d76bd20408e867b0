// Every instruction is executed over pairs of special and random operands, and compared with the host's own arithmetic.
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>

#include "verify/simulator/ptx/parse.h"
#include "verify/simulator/test_kernel.h"

namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kNan = 0x7FFFFFFF;  // what fp32 arithmetic returns, measured on H200

std::vector<std::uint32_t> operands(std::vector<std::uint32_t> special, std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    while (special.size() < count) special.push_back(static_cast<std::uint32_t>(random()));
    return special;
}

std::vector<std::uint32_t> float_operands() {
    return operands({0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000,
                     0xBF800000, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
                     0xFFC12345, 0x7F800001, 0x34000000, 0x4B000000, 0x4B800001, 0x3EAAAAAB},
                    64, 1);
}

std::vector<std::uint32_t> integer_operands() {
    return operands({0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678}, 64, 2);
}

/// Runs "instruction %b2, %b0, %b1" for all pairs of operands, a pair a lane.
std::vector<std::uint32_t> run_pairs(const std::string& instruction, const std::vector<std::uint32_t>& values,
                                     const std::string& operands_text = "%b2, %b0, %b1") {
    const auto count = static_cast<std::uint32_t>(values.size());
    TestKernel kernel(fmt::format("mov.u32 %b9, %ctaid.x;\n"
                                  "mad.lo.s32 %b8, %b9, {}, %t;\n"
                                  "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a0, %d0; ld.global.b32 %b0, [%d1];\n"
                                  "mul.wide.u32 %d0, %b9, 4; add.s64 %d1, %a0, %d0; ld.global.b32 %b1, [%d1];\n"
                                  "{} {};\n"
                                  "mul.wide.u32 %d0, %b8, 4; add.s64 %d1, %a1, %d0; st.global.b32 [%d1], %b2;",
                                  count, instruction, operands_text),
                      2);
    kernel.input(values).output(std::size_t{count} * count * 4);
    REQUIRE(kernel.run({count, 1, 1}, {count, 1, 1}));
    REQUIRE(kernel.findings().empty());
    return kernel.read<std::uint32_t>(1, std::size_t{count} * count);
}

using Binary = std::function<std::uint32_t(std::uint32_t, std::uint32_t)>;

void check_pairs(const std::string& instruction, const std::vector<std::uint32_t>& values, const Binary& expected,
                 const std::string& operands_text = "%b2, %b0, %b1") {
    const auto results = run_pairs(instruction, values, operands_text);
    for (std::size_t j = 0; j < values.size(); ++j) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            INFO(fmt::format("{} {:#010x}, {:#010x}", instruction, values[i], values[j]));
            REQUIRE(results[j * values.size() + i] == expected(values[i], values[j]));
        }
    }
}

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::isnan(value) ? kNan : std::bit_cast<std::uint32_t>(value); }
/// Subnormal numbers become zeros of the same sign (.ftz).
float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value; }

TEST_CASE("fp32 arithmetic is IEEE 754 to the bit, with the GPU's NaN") {
    const auto values = float_operands();
    check_pairs("add.f32", values, [](auto a, auto b) { return bits_of(as_float(a) + as_float(b)); });
    check_pairs("sub.rn.f32", values, [](auto a, auto b) { return bits_of(as_float(a) - as_float(b)); });
    check_pairs("mul.f32", values, [](auto a, auto b) { return bits_of(as_float(a) * as_float(b)); });
    check_pairs("div.rn.f32", values, [](auto a, auto b) { return bits_of(as_float(a) / as_float(b)); });
    check_pairs(
        "fma.rn.f32", values, [](auto a, auto b) { return bits_of(std::fma(as_float(a), as_float(b), as_float(a))); },
        "%b2, %b0, %b1, %b0");
    check_pairs("mul.ftz.f32", values,
                [](auto a, auto b) { return bits_of(flush(flush(as_float(a)) * flush(as_float(b)))); });
    check_pairs(
        "rcp.rn.f32", values, [](auto a, auto) { return bits_of(1.0F / as_float(a)); }, "%b2, %b0");
    check_pairs(
        "sqrt.rn.f32", values, [](auto a, auto) { return bits_of(std::sqrt(as_float(a))); }, "%b2, %b0");
}

TEST_CASE("max and min return the operand that is a number, and order the zeros") {
    const auto pick = [](std::uint32_t a, std::uint32_t b, bool largest) {
        const float x = as_float(a);
        const float y = as_float(b);
        if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? bits_of(y) : bits_of(x);
        if (x == 0 && y == 0) return largest ? a & b : a | b;
        return largest == (x > y) ? a : b;
    };
    check_pairs("max.f32", float_operands(), [&](auto a, auto b) { return pick(a, b, true); });
    check_pairs("min.f32", float_operands(), [&](auto a, auto b) { return pick(a, b, false); });
}

TEST_CASE("integer arithmetic wraps, shifts clamp at the width") {
    const auto values = integer_operands();
    const auto sign = [](std::uint32_t a) { return static_cast<std::int32_t>(a); };
    check_pairs("add.s32", values, [](auto a, auto b) { return a + b; });
    check_pairs("sub.s32", values, [](auto a, auto b) { return a - b; });
    check_pairs("mul.lo.s32", values, [](auto a, auto b) { return a * b; });
    check_pairs("mul.hi.u32", values,
                [](auto a, auto b) { return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32); });
    check_pairs("mul.hi.s32", values, [&](auto a, auto b) {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(std::int64_t{sign(a)} * sign(b)) >> 32);
    });
    check_pairs("min.s32", values, [&](auto a, auto b) { return sign(a) < sign(b) ? a : b; });
    check_pairs("max.u32", values, [](auto a, auto b) { return a > b ? a : b; });
    check_pairs("and.b32", values, [](auto a, auto b) { return a & b; });
    check_pairs("xor.b32", values, [](auto a, auto b) { return a ^ b; });
    check_pairs("shl.b32", values, [](auto a, auto b) { return b > 31 ? 0 : a << b; });
    check_pairs("shr.u32", values, [](auto a, auto b) { return b > 31 ? 0 : a >> b; });
    check_pairs("shr.s32", values,
                [&](auto a, auto b) { return static_cast<std::uint32_t>(sign(a) >> std::min(b, 31U)); });
    check_pairs(
        "mad.lo.s32", values, [](auto a, auto b) { return a * b + a; }, "%b2, %b0, %b1, %b0");
    check_pairs(
        "popc.b32", values, [](auto a, auto) { return static_cast<std::uint32_t>(std::popcount(a)); }, "%b2, %b0");
    check_pairs(
        "clz.b32", values, [](auto a, auto) { return static_cast<std::uint32_t>(std::countl_zero(a)); }, "%b2, %b0");
    // Truth table of (a & b) ^ c with the inputs 0xF0, 0xCC, 0xAA.
    check_pairs(
        "lop3.b32", values, [](auto a, auto b) { return (a & b) ^ a; }, "%b2, %b0, %b1, %b0, 0x6A");
}

TEST_CASE("comparisons: ordered ones are false with a NaN, unordered ones true") {
    const auto compare = [](const std::string& instruction, const std::function<bool(float, float)>& expected) {
        check_pairs(
            fmt::format("setp.{}.f32 %p0, %b0, %b1; selp.u32", instruction), float_operands(),
            [&](auto a, auto b) { return expected(as_float(a), as_float(b)) ? 1U : 0U; }, "%b2, 1, 0, %p0");
    };
    compare("lt", [](float a, float b) { return a < b; });
    compare("ge", [](float a, float b) { return a >= b; });
    compare("eq", [](float a, float b) { return a == b; });
    compare("neu", [](float a, float b) { return a != b; });
    compare("ltu", [](float a, float b) { return !(a >= b); });
    compare("num", [](float a, float b) { return !std::isnan(a) && !std::isnan(b); });
}

TEST_CASE("conversions to 16 bits round to nearest even, and back is exact") {
    std::mt19937 random(3);
    auto values = float_operands();
    // Ties of both formats: half a unit behind a random 16-bit number.
    for (int i = 0; i < 64; ++i) {
        values.push_back(static_cast<std::uint32_t>(random()) << 16U | 0x8000);
        values.push_back((0x38800000 + (static_cast<std::uint32_t>(random()) % 0x0F000000)) / 0x2000 * 0x2000 + 0x1000);
    }
    check_pairs(
        "cvt.rn.f16.f32 %h0, %b0; mov.b32", values,
        [](auto a, auto) {
            const float x = as_float(a);
            return std::isnan(x) ? 0x7FFFU : std::uint32_t{std::bit_cast<std::uint16_t>(Eigen::half(x))};
        },
        "%b2, {%h0, 0}");
    check_pairs(
        "cvt.rn.bf16.f32 %h0, %b0; mov.b32", values,
        [](auto a, auto) {
            const float x = as_float(a);
            return std::isnan(x) ? 0x7FFFU : std::uint32_t{std::bit_cast<std::uint16_t>(Eigen::bfloat16(x))};
        },
        "%b2, {%h0, 0}");
    std::vector<std::uint32_t> halves;
    for (std::uint32_t bits = 0; bits < 0x10000; bits += 257) halves.push_back(bits);
    check_pairs(
        "cvt.u16.u32 %h0, %b0; cvt.f32.f16", halves,
        [](auto a, auto) {
            return bits_of(static_cast<float>(std::bit_cast<Eigen::half>(static_cast<std::uint16_t>(a))));
        },
        "%b2, %h0");
}

TEST_CASE("float to integer truncates and saturates, and a NaN becomes 0") {
    check_pairs(
        "cvt.rzi.s32.f32", float_operands(),
        [](auto a, auto) {
            const float x = as_float(a);
            if (std::isnan(x)) return 0U;
            if (x >= 0x1p31F) return 0x7FFFFFFFU;
            if (x < -0x1p31F) return 0x80000000U;
            return static_cast<std::uint32_t>(static_cast<std::int32_t>(x));
        },
        "%b2, %b0");
}

TEST_CASE("ex2.approx.ftz: what was measured on H200") {
    // x, result: integers are exact, special values, and results below the normal numbers are flushed.
    const std::vector<std::pair<float, std::uint32_t>> samples{
        {0.0F, 0x3F800000},    {-1.0F, 0x3F000000},  {3.0F, 0x41000000},      {-126.0F, 0x00800000},
        {-127.0F, 0x00000000}, {128.0F, 0x7F800000}, {-INFINITY, 0x00000000}, {NAN, 0x7FFFFFFF}};
    std::vector<std::uint32_t> values;
    for (const auto& sample : samples) values.push_back(std::bit_cast<std::uint32_t>(sample.first));
    const auto results = run_pairs("ex2.approx.ftz.f32", values, "%b2, %b0");
    for (std::size_t i = 0; i < samples.size(); ++i) CHECK(results[i] == samples[i].second);
}

TEST_CASE("what is not implemented is refused by name, with its place") {
    const auto refusal = [](std::string_view body) {
        try {
            TestKernel kernel(body, 0);
            kernel.run({1, 1, 1}, {32, 1, 1});
        } catch (const ptx::PtxError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    const auto contains = [](const std::string& text, std::string_view part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    const std::string opcode = refusal("frobnicate.b32 %b0, %b1;");
    contains(opcode, "test.ptx:8:1");
    contains(opcode, "frobnicate");
    const std::string modifier = refusal("add.wobbly.s32 %b0, %t, 1;");
    contains(modifier, "test.ptx:8");
    contains(modifier, "wobbly");
    contains(refusal("sin.approx.f32 %b0, %t;"), "sin");
    contains(refusal("add.s32 %b0, %t;"), "add");
    contains(refusal("add.s32 %d0, %t, 1;"), "operand 1: a 64-bit register");
    CHECK(refusal("add.s32 %b0, %t, 1;") == "accepted");
}

}  // namespace
}  // namespace block_attention::simulator
