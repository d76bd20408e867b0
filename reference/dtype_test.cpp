#include "reference/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace block_attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("names and sizes go together") {
    CHECK(size_of(DType::fp16) == 2);
    CHECK(size_of(DType::bf16) == 2);
    CHECK(size_of(DType::fp32) == 4);
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) CHECK(parse_dtype(name_of(dtype)) == dtype);
    CHECK_FALSE(parse_dtype("fp8").has_value());
}

TEST_CASE("every 16-bit pattern survives load and store") {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
        for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
            const auto stored = static_cast<std::uint16_t>(bits);
            const double value = load_element(dtype, &stored);
            if (std::isnan(value)) continue;  // a NaN's payload is nobody's concern
            std::uint16_t again = 0;
            store_element(dtype, &again, value);
            REQUIRE(again == stored);
            REQUIRE(round_to(dtype, value) == value);
        }
    }
}

TEST_CASE("round_to: halfway cases go to the even neighbour, everything else to the nearer one") {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
        for (std::uint32_t bits = 0; bits + 1 < (dtype == DType::fp16 ? 0x7C00U : 0x7F80U); ++bits) {
            const auto low_bits = static_cast<std::uint16_t>(bits);
            const auto high_bits = static_cast<std::uint16_t>(bits + 1);
            const double low = load_element(dtype, &low_bits);
            const double high = load_element(dtype, &high_bits);
            const double middle = (low + high) / 2;
            REQUIRE(round_to(dtype, middle) == (bits % 2 == 0 ? low : high));
            REQUIRE(round_to(dtype, std::nextafter(middle, 0)) == low);
            REQUIRE(round_to(dtype, std::nextafter(middle, kInfinity)) == high);
            REQUIRE(round_to(dtype, -std::nextafter(middle, kInfinity)) == -high);
        }
    }
}

TEST_CASE("round_to fp32 is the processor's conversion") {
    for (const double value : {1.0 / 3, 1e-45, 3e-46, 7.1e-46, 1e38, 3.4e38, 1 + 0x1p-24, 1 + 0x1.8p-23, -0.1}) {
        CHECK(round_to(DType::fp32, value) == static_cast<double>(static_cast<float>(value)));
    }
}

TEST_CASE("round_to: the largest finite number ends half a unit above itself") {
    CHECK(round_to(DType::fp16, 65504) == 65504);
    CHECK(round_to(DType::fp16, 65519.999) == 65504);
    CHECK(round_to(DType::fp16, 65520) == kInfinity);
    CHECK(round_to(DType::fp16, -65520) == -kInfinity);
    CHECK(round_to(DType::fp32, 3.5e38) == kInfinity);
    CHECK(std::isnan(round_to(DType::bf16, std::nan(""))));
    CHECK(std::signbit(round_to(DType::bf16, -0.0)));
}

}  // namespace
}  // namespace block_attention
