#include "verify/text.h"

#include <doctest/doctest.h>

#include <limits>

namespace block_attention {
namespace {

TEST_CASE("numbers are grouped by thousands") {
    CHECK(grouped(0) == "0");
    CHECK(grouped(999) == "999");
    CHECK(grouped(1000) == "1,000");
    CHECK(grouped(1234567) == "1,234,567");
    CHECK(grouped(-123) == "-123");
    CHECK(grouped(-1234) == "-1,234");
    CHECK(counted(1, "row") == "1 row");
    CHECK(counted(2000, "row") == "2,000 rows");
}

TEST_CASE("shares are percentages") {
    CHECK(percent(0) == "0.00 %");
    CHECK(percent(0.03214) == "3.21 %");
    CHECK(percent(99.99) == "9999.00 %");
    CHECK(percent(123456) == "1.2e+07 %");
    CHECK(percent(std::numeric_limits<double>::infinity()) == "infinite");
}

TEST_CASE("colour is escape sequences, or nothing") {
    CHECK(coloured("passed", Colour::green, true) == "\033[32mpassed\033[0m");
    CHECK(coloured("passed", Colour::green, false) == "passed");
}

}  // namespace
}  // namespace block_attention
