#pragma once
#include <cstdint>
#include <type_traits>

/// Products of integers, of which the high half counts.
namespace block_attention::simulator {

/// The type twice as wide; void for 64 bits.
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, void>>;

/// The high half of a product.
template <typename T>
T multiply_high(T a, T b) {
    if constexpr (sizeof(T) < 8) {
        return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b) >> (8 * sizeof(T)));
    } else {
        const auto ua = static_cast<std::uint64_t>(a);
        const auto ub = static_cast<std::uint64_t>(b);
        const std::uint64_t a0 = ua & 0xFFFFFFFF;
        const std::uint64_t a1 = ua >> 32;
        const std::uint64_t b0 = ub & 0xFFFFFFFF;
        const std::uint64_t b1 = ub >> 32;
        const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
        const std::uint64_t cross = a0 * b1 + (middle & 0xFFFFFFFF);
        std::uint64_t high = a1 * b1 + (middle >> 32) + (cross >> 32);
        if (std::is_signed_v<T> && a < 0) high -= ub;
        if (std::is_signed_v<T> && b < 0) high -= ua;
        return static_cast<T>(high);
    }
}

}  // namespace block_attention::simulator
