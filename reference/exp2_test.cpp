#include "reference/exp2.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace block_attention {
namespace {

TEST_CASE("exp2_exact keeps its error bound") {
    // Every 61st float of [-126, -0]: 18 million. The stride is odd, so that every low bit pattern occurs.
    double worst = 0;
    for (std::uint32_t bits = 0x80000000; bits <= 0xC2FC0000; bits += 61) {
        const auto x = std::bit_cast<float>(bits);
        const double exact = std::exp2(static_cast<double>(x));
        worst = std::max(worst, std::abs(static_cast<double>(exp2_exact(x)) / exact - 1));
    }
    CHECK(worst <= kExp2RelativeError);
    CHECK(worst > 0.9 * kExp2RelativeError);  // else the bound is looser than it says
}

TEST_CASE("exp2_exact at the ends") {
    CHECK(exp2_exact(0.0F) == 1.0F);
    CHECK(exp2_exact(-0.0F) == 1.0F);
    for (int n = -126; n <= 0; ++n) CHECK(exp2_exact(static_cast<float>(n)) == std::ldexp(1.0F, n));
    CHECK(exp2_exact(std::nextafter(-126.0F, -200.0F)) == 0.0F);
    CHECK(exp2_exact(-1e30F) == 0.0F);
    CHECK(exp2_exact(-std::numeric_limits<float>::infinity()) == 0.0F);
    CHECK_FALSE(std::signbit(exp2_exact(-std::numeric_limits<float>::infinity())));
    CHECK(std::isnan(exp2_exact(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("kLog2e is log2(e) rounded to float") { CHECK(kLog2e == static_cast<float>(1 / std::log(2.0))); }

}  // namespace
}  // namespace block_attention
