#include "verify/ptx_command/expectation.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "verify/usage_error.h"

namespace block_attention {
namespace {

/// One buffer "y" of that type and shape.
std::vector<BufferSpec> one_buffer(ElementType type, const std::vector<std::int64_t>& shape) {
    BufferSpec buffer{.name = "y", .array = {.type = type, .shape = shape, .content = {}}};
    buffer.array.elements = element_count(shape).value();
    return {buffer};
}

std::vector<Expectation> parse(const std::string& text, const std::vector<BufferSpec>& buffers) {
    const JsonFile file("f.json", text);
    return read_expectations(file.root(), buffers, {});
}

std::string fault_of(const std::string& text, const std::vector<BufferSpec>& buffers) {
    try {
        parse(text, buffers);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

/// Compares f32 numbers with an expectation that is read from text.
Agreement compare_floats(const std::vector<float>& computed, const std::string& text) {
    const auto buffers = one_buffer(ElementType::f32, {static_cast<std::int64_t>(computed.size())});
    const Expectation expectation = parse(text, buffers).at(0);
    return compare(expectation, buffers[0], std::as_bytes(std::span(computed)), make_content(expectation.array, 0, 0));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("bit for bit, the zeros differ and equal NaNs don't") {
    CHECK(compare_floats({1, 2}, R"({"y": {"content": {"values": [1, 2]}}})").wrong == 0);
    const Agreement zeros = compare_floats({1, -0.0F, 3}, R"({"y": {"content": {"values": [1, 0, 3]}}})");
    CHECK(zeros.wrong == 1);
    CHECK(zeros.first_wrong == "y[1]: computed -0 (0x80000000), expected 0 (0x00000000)");
    CHECK(compare_floats({kNan}, R"({"y": {"content": {"values": ["nan"]}}})").wrong == 0);
    CHECK(compare_floats({kNan}, R"({"y": {"content": {"values": ["0x7fffffff"]}}})").wrong == 1);
}

TEST_CASE("a tolerance is absolute plus relative, and its end is inside") {
    const auto wrong = [](float computed, const char* tolerance) {
        return compare_floats({computed}, fmt::format(R"({{"y": {{"content": {{"values": [8]}}, {}}}}})", tolerance))
            .wrong;
    };
    CHECK(wrong(8.5F, R"("absolute": 0.5)") == 0);
    CHECK(wrong(8.500001F, R"("absolute": 0.5)") == 1);
    CHECK(wrong(7, R"("relative": 0.125)") == 0);
    CHECK(wrong(6.999999F, R"("relative": 0.125)") == 1);
    CHECK(wrong(9.5F, R"("absolute": 0.5, "relative": 0.125)") == 0);
    CHECK(wrong(-8, R"("absolute": 0.5, "relative": 0.125)") == 1);
    const Agreement agreement =
        compare_floats({8, 8.25F, 7.5F}, R"({"y": {"content": {"values": [8, 8, 8]}, "absolute": 1}})");
    CHECK(agreement.largest_difference == 0.5);
    CHECK(agreement.elements == 3);
}

TEST_CASE("within a tolerance a NaN agrees with a NaN alone, an infinity with itself alone") {
    const auto wrong = [](float computed, const char* expected) {
        return compare_floats({computed},
                              fmt::format(R"({{"y": {{"content": {{"values": [{}]}}, "absolute": 1e300}}}})", expected))
            .wrong;
    };
    CHECK(wrong(kNan, "\"0x7fffffff\"") == 0);
    CHECK(wrong(kNan, "1") == 1);
    CHECK(wrong(1, "\"nan\"") == 1);
    CHECK(wrong(kInfinity, "\"inf\"") == 0);
    CHECK(wrong(kInfinity, "\"-inf\"") == 1);
    CHECK(wrong(kInfinity, "1") == 1);
    CHECK(wrong(1, "\"-inf\"") == 1);
}

TEST_CASE("within a tolerance types may differ") {
    const auto buffers = one_buffer(ElementType::s64, {2, 1});
    const Expectation expectation =
        parse(R"({"y": {"dtype": "f64", "content": {"values": [0.5, 2]}, "absolute": 0.5}})", buffers).at(0);
    const std::array<std::int64_t, 2> computed{1, 3};
    const Agreement agreement =
        compare(expectation, buffers[0], std::as_bytes(std::span(computed)), make_content(expectation.array, 0, 0));
    CHECK(agreement.wrong == 1);
    CHECK(agreement.first_wrong == "y[1, 0]: computed 3 (0x0000000000000003), expected 2 (0x4000000000000000)");
}

TEST_CASE("large integers are compared exactly") {
    const auto buffers = one_buffer(ElementType::u64, {1});
    const Expectation expectation =
        parse(R"({"y": {"content": {"values": [18446744073709551615]}, "absolute": 0}})", buffers).at(0);
    const std::array<std::uint64_t, 1> computed{18446744073709551614U};
    CHECK(compare(expectation, buffers[0], std::as_bytes(std::span(computed)), make_content(expectation.array, 0, 0))
              .wrong == 1);
}

TEST_CASE("faulty expectations are named") {
    const auto buffers = one_buffer(ElementType::f32, {2, 3});
    CHECK(fault_of(R"({"x": {"content": "zeros"}})", buffers) == "f.json: there is no buffer \"x\"; did you mean y?");
    CHECK(fault_of(R"({"y": {"content": "zeros", "tolerance": 1}})", buffers)
              .starts_with("f.json: y: the key \"tolerance\" is unknown"));
    CHECK(fault_of(R"({"y": {"content": "zeros", "absolute": -1}})", buffers) ==
          "f.json: y.absolute: a tolerance is not negative");
    CHECK(fault_of(R"({"y": {"absolute": 1}})", buffers) == "f.json: y: the key \"content\" is missing");
    CHECK(fault_of(R"({"y": {"content": "poison"}})", buffers) ==
          "f.json: y.content: poison cannot be expected: it is what was never written");
    CHECK(
        fault_of(R"({"y": {"content": "normal"}})", buffers) ==
        "f.json: y: random content needs a \"seed\" here: a buffer with the same seed and content then holds the same");
    CHECK(fault_of(R"({"y": {"dtype": "f64", "content": "zeros"}})", buffers) ==
          "f.json: y: expected is f64[2, 3], but the buffer is f32[2, 3]; give a tolerance to compare other types");
    CHECK(fault_of(R"({"y": {"shape": [3, 2], "content": "zeros", "absolute": 1}})", buffers) ==
          "f.json: y: expected is f32[3, 2], but the buffer is f32[2, 3]");
}

}  // namespace
}  // namespace block_attention
