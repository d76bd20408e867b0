#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define BLOCK_ATTENTION_HOST_DEVICE __host__ __device__
#else
#include <cmath>
#define BLOCK_ATTENTION_HOST_DEVICE
#endif

namespace block_attention {

/// log2(e), rounded to float: exp(x) = 2^(kLog2e * x).
inline constexpr float kLog2e = 0x1.715476p+0F;

/// The largest relative error of exp2_exact for an argument in [-126, 0]. Measured over every float there
/// (1.12e9 arguments, against std::exp2 in double): 1.4153 * 2^-24. reference/exp2_test.cpp repeats it on a part.
inline constexpr double kExp2RelativeError = 0x1.8p-24;

/// 2^x for x <= 0, with the same bits on every device: range reduction and a polynomial of degree 6, each operation
/// exactly defined by IEEE 754, where ex2.approx (PTX ISA 9.7.3.20) is not. 2^0 is exactly 1; below 2^-126, the
/// smallest normal float, the result is +0; a NaN stays one.
BLOCK_ATTENTION_HOST_DEVICE inline float exp2_exact(float x) {
    // Adding 1.5 * 2^23 leaves no bits for a fraction: the sum's low bits are x rounded to the integer n.
    constexpr float kRounder = 12582912.0F;
    const float rounded = x + kRounder;
    const float fraction = x - (rounded - kRounder);  // exact, in [-1/2, 1/2]
    const auto n = __builtin_bit_cast(std::int32_t, rounded) - __builtin_bit_cast(std::int32_t, kRounder);

    float power = 0x1.470b4ap-13F;  // minimax of 2^fraction with the constant 1; error 2.6e-9 without roundings
    power = fmaf(power, fraction, 0x1.5f7276p-10F);
    power = fmaf(power, fraction, 0x1.3b270ep-7F);
    power = fmaf(power, fraction, 0x1.c6ae72p-5F);
    power = fmaf(power, fraction, 0x1.ebfbe2p-3F);
    power = fmaf(power, fraction, 0x1.62e432p-1F);
    power = fmaf(power, fraction, 1.0F);

    const auto exponent = static_cast<std::uint32_t>(n + 127) << 23U;  // 2^n as a float, n >= -126
    const float result = power * __builtin_bit_cast(float, exponent);
    return x < -126.0F ? 0.0F : result;
}

}  // namespace block_attention
