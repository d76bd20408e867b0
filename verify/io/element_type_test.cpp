#include "verify/io/element_type.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

namespace block_attention {
namespace {

TEST_CASE("names are read back, and sizes are those of the names") {
    for (std::size_t i = 0; i < element_type_names().size(); ++i) {
        const auto type = static_cast<ElementType>(i);
        const std::string& name = element_type_names()[i];
        CHECK(name_of(type) == name);
        CHECK(parse_element_type(name) == type);
        CHECK(size_of(type) * 8 == std::stoul(name.substr(name.find_first_of("123468"))));
        CHECK(is_floating(type) == (name.find('f') != std::string::npos));
        CHECK(is_signed(type) == (name[0] != 'u'));
    }
    CHECK_FALSE(parse_element_type("fp16"));
}

TEST_CASE("integers are stored and loaded to the last bit") {
    std::array<std::byte, 8> bytes{};
    store_integer(ElementType::u64, std::numeric_limits<std::uint64_t>::max(), bytes.data());
    CHECK(load_element(ElementType::u64, bytes.data()) == 18446744073709551615.0L);
    CHECK(load_element(ElementType::s64, bytes.data()) == -1.0L);
    store_integer(ElementType::s64, std::uint64_t{1} << 63, bytes.data());
    CHECK(load_element(ElementType::s64, bytes.data()) == -9223372036854775808.0L);
    bytes.fill(std::byte{0});
    store_integer(ElementType::s8, 0x180, bytes.data());
    CHECK(load_element(ElementType::s8, bytes.data()) == -128);
    CHECK(load_element(ElementType::u16, bytes.data()) == 128);
}

TEST_CASE("floating-point numbers are rounded once, to nearest even") {
    std::array<std::byte, 8> bytes{};
    const auto rounded = [&](ElementType type, double value) {
        store_floating(type, value, bytes.data());
        return load_element(type, bytes.data());
    };
    CHECK(rounded(ElementType::f16, 2049) == 2048);
    CHECK(rounded(ElementType::f16, 2051) == 2052);
    CHECK(rounded(ElementType::bf16, 257) == 256);
    CHECK(rounded(ElementType::bf16, 1.0 + 0x1p-8 + 0x1p-40) == 1.0L + 0x1p-7L);  // through fp32 it would be a tie
    CHECK(rounded(ElementType::f32, 16777217) == 16777216);
    CHECK(rounded(ElementType::f64, 0.1) == static_cast<long double>(0.1));
    CHECK(std::isinf(rounded(ElementType::f16, 65520)));
    CHECK(std::isnan(rounded(ElementType::bf16, std::nan(""))));
}

TEST_CASE("the largest exact integer is exact, and the next is not") {
    std::array<std::byte, 8> bytes{};
    for (const ElementType type : {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::f64}) {
        const std::uint64_t most = largest_exact_integer(type);
        store_floating(type, static_cast<double>(most), bytes.data());
        CHECK(load_element(type, bytes.data()) == static_cast<long double>(most));
        if (type == ElementType::f64) continue;
        store_floating(type, static_cast<double>(most + 1), bytes.data());
        CHECK(load_element(type, bytes.data()) != static_cast<long double>(most + 1));
    }
    CHECK(largest_exact_integer(ElementType::s8) == 127);
    CHECK(largest_exact_integer(ElementType::u64) == std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace block_attention
