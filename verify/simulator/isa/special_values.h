#pragma once
#include <bit>
#include <cstdint>

/// What instructions make of NaNs (measured on H200: results in fp32 and in 16 bits are canonical, in fp64 they carry
/// an operand's payload) and, with .ftz, of subnormal numbers.
namespace block_attention::simulator {

inline constexpr std::uint32_t kNan32 = 0x7FFFFFFF;
inline constexpr std::uint16_t kNan16 = 0x7FFF;
inline constexpr std::uint64_t kNan64 = 0xFFF8000000000000;  ///< of an operation on numbers, such as 0 / 0

inline bool is_nan(double value) { return value != value; }

/// The same NaN, quiet.
inline double quiet(double nan) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | std::uint64_t{1} << 51);
}

/// A subnormal becomes a zero of its sign.
inline float flush(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}

}  // namespace block_attention::simulator
