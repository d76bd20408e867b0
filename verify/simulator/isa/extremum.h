#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

/// Minimum and maximum: -0 is below +0; of a number and a NaN the number (with .NaN: NaN).
template <bool maximum, bool propagate>
struct Extremum {
    template <typename T>
    static T apply(T a, T b) {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        const T nan = std::bit_cast<T>(static_cast<Bits>(sizeof(T) == 4 ? kNan32 : kNan64));
        // Equal numbers differ at most in the sign of zero: the maximum is negative if both are, the minimum if one is.
        const T equal = std::bit_cast<T>(maximum ? std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b)
                                                 : std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
        T result = (maximum ? a > b : a < b) ? a : b;
        result = a == b ? equal : result;
        result = a != a ? (propagate ? nan : b) : result;
        result = b != b ? (propagate || a != a ? nan : a) : result;
        return result;
    }
    template <typename T>
    static T apply(T a, T b, T c) {
        return apply(apply(a, b), c);
    }
};

}  // namespace block_attention::simulator
