#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/flush.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/special_values.h"

/// What makes an arithmetic operation an instruction: its types, .ftz, .sat and .relu, and what becomes of NaN.
namespace block_attention::simulator {

/// Into [0, 1]; NaN becomes +0 (.sat).
template <typename T>
T saturate(T value) {
    return value > 0 ? (value < 1 ? value : T{1}) : T{0};
}

enum class After : std::uint8_t { nothing, saturate, relu };

template <typename T>
T clamp(T value, After after) {
    if (after == After::saturate) return saturate(value);
    if (after == After::relu) return value < 0 || value == 0 ? T{0} : value;
    return value;
}

/// An operation on float, with the modifiers .ftz and .sat.
template <typename Operation, bool ftz, After after>
struct Single {
    template <typename... T>
    static float apply(T... operands) {
        if constexpr (ftz) {
            const float result = canonical(Operation::apply(flush(operands)...));
            return clamp(flush_result<Operation>(result, flush(operands)...), after);
        } else {
            return clamp(canonical(Operation::apply(operands...)), after);
        }
    }
};

/// Which operand's NaN becomes the result's, by preference (measured on H200).
template <typename Operation>
double propagated_nan(double a) {
    return a;
}
template <typename Operation>
double propagated_nan(double a, double b) {
    if constexpr (requires { Operation::kPrefersFirstNan; }) return is_nan(a) ? a : b;
    return is_nan(b) ? b : a;
}
template <typename Operation>
double propagated_nan(double a, double b, double c) {
    return is_nan(b) ? b : is_nan(c) ? c : a;
}

template <typename Operation>
struct Double {
    template <typename... T>
    static double apply(T... operands) {
        const double result = Operation::apply(operands...);
        if (!is_nan(result)) return result;
        const double nan = propagated_nan<Operation>(operands...);
        return is_nan(nan) ? quiet(nan) : std::bit_cast<double>(kNan64);
    }
};

/// Two floats in 64 bits.
template <typename Operation>
struct PairOfFloats {
    template <typename... T>
    static std::uint64_t apply(T... operands) {
        const auto part = [](std::uint64_t both, unsigned shift) {
            return std::bit_cast<float>(static_cast<std::uint32_t>(both >> shift));
        };
        const auto low = std::bit_cast<std::uint32_t>(Operation::apply(part(operands, 0)...));
        const auto high = std::bit_cast<std::uint32_t>(Operation::apply(part(operands, 32)...));
        return std::uint64_t{high} << 32 | low;
    }
};

/// Two 16-bit values in 32 bits.
template <typename Operation, typename T>
struct PairOfHalves {
    template <typename... U>
    static std::uint32_t apply(U... operands) {
        const auto part = [](std::uint32_t both, unsigned shift) {
            return T{static_cast<std::uint16_t>(both >> shift)};
        };
        const T low = Operation::apply(part(operands, 0)...);
        const T high = Operation::apply(part(operands, 16)...);
        return std::uint32_t{high.bits} << 16 | low.bits;
    }
};

/// A subnormal 16-bit value becomes a zero of its sign. There is no .ftz for bf16.
inline Half flush(Half value) {
    return {static_cast<std::uint16_t>((value.bits & 0x7C00) == 0 ? value.bits & 0x8000 : value.bits)};
}
inline BFloat16 flush(BFloat16 value) { return value; }

/// Rounds an exact result, given in float, to 16 bits. What would be subnormal but for the rounding of the subnormal
/// numbers' coarser grid is flushed (measured on H200). The limit is where rounding to 11 bits gives 2^-14.
template <typename T, bool ftz>
T round_result(float exact) {
    constexpr float kRoundsToNormal = 0x1.FFEp-15F;
    return round_to<T>(ftz && std::fabs(exact) < kRoundsToNormal ? std::copysign(0.0F, exact) : exact);
}

template <typename T>
T clamp_sixteen(T value, After after) {
    return after == After::nothing ? value : round_to<T>(clamp(to_float(value), after));
}

/// An operation on 16-bit values that is computed in float and rounded. For a sum, a difference or a product rounding
/// twice is harmless, since float has more than twice the precision (24 >= 2 * 11 + 2); an operation for which it is
/// not has a function `sixteen`.
template <typename Operation, bool ftz, After after>
struct Sixteen {
    template <typename T, typename... Rest>
    static T apply(T first, Rest... rest) {
        const auto prepared = [](T value) { return ftz ? flush(value) : value; };
        float exact = 0;
        if constexpr (requires { Operation::sixteen(first, rest...); }) {
            exact = Operation::sixteen(prepared(first), prepared(rest)...);
        } else {
            exact = Operation::apply(to_float(prepared(first)), to_float(prepared(rest))...);
        }
        return clamp_sixteen(round_result<T, ftz>(exact), after);
    }
};

template <typename Operation, typename T, std::size_t sources>
constexpr Execute kExecute = execute_on<Operation, T>(std::make_index_sequence<sources>{});

/// The executor of an operation on 16-bit values, or null.
template <typename Operation, std::size_t sources, bool ftz, After after>
Execute choose_sixteen(Type type) {
    using Scalar = Sixteen<Operation, ftz, after>;
    switch (type) {
        case Type::f16:
            return kExecute<Scalar, Half, sources>;
        case Type::f16x2:
            return kExecute<PairOfHalves<Scalar, Half>, std::uint32_t, sources>;
        case Type::bf16:
            return ftz || after == After::saturate ? nullptr : kExecute<Scalar, BFloat16, sources>;
        case Type::bf16x2:
            return ftz || after == After::saturate ? nullptr
                                                   : kExecute<PairOfHalves<Scalar, BFloat16>, std::uint32_t, sources>;
        default:
            return nullptr;
    }
}

/// Takes the result and the sources, all of one type.
inline void decode_operands(Decoder& d, Type type, std::size_t sources) {
    d.finish_modifiers();
    d.expect_operands(sources + 1);
    d.result.slots[0] = d.destination(0, type);
    for (std::size_t i = 1; i <= sources; ++i) d.result.slots[i] = d.source(i, type);
}

}  // namespace block_attention::simulator
