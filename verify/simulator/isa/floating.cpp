/// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5), exact to the bit: IEEE 754 results, NaN results as measured on
/// H200.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/approximate.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/flush.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/rounding.h"
#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

namespace {

struct Add {
    template <typename T>
    static T apply(T a, T b) {
        return a + b;
    }
};

struct Subtract {
    template <typename T>
    static T apply(T a, T b) {
        return a - b;
    }
};

// For results near the least normal number `scaled` is the operation's result times kFlushScale, rounded once.

struct Multiply {
    template <typename T>
    static T apply(T a, T b) {
        return a * b;
    }
    static float scaled(float a, float b) { return scaled_product(a, b); }
};

struct MultiplyAdd {
    template <typename T>
    static T apply(T a, T b, T c) {
        return std::fma(a, b, c);
    }
    static float scaled(float a, float b, float c) {
        const bool small = std::fabs(a) < 1;
        return std::fma(a * (small ? kFlushScale : 1.0F), b * (small ? 1.0F : kFlushScale), c * kFlushScale);
    }
};

struct Divide {
    /// ptxas makes a division of other instructions, and the NaN that comes of them is the dividend's (measured on
    /// H200).
    static constexpr bool kPrefersFirstNan = true;

    template <typename T>
    static T apply(T a, T b) {
        return a / b;
    }
    static float scaled(float a, float b) { return a * kFlushScale / b; }
};

struct Reciprocal {
    template <typename T>
    static T apply(T a) {
        return T{1} / a;
    }
    static float scaled(float a) { return kFlushScale / a; }
};

struct SquareRoot {
    template <typename T>
    static T apply(T a) {
        return std::sqrt(a);
    }
};

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
/// twice is harmless, since float has more than twice the precision (24 >= 2 * 11 + 2).
template <typename Operation, bool ftz, After after>
struct Sixteen {
    template <typename T, typename... Rest>
    static T apply(T first, Rest... rest) {
        const auto prepared = [](T value) { return to_float(ftz ? flush(value) : value); };
        return clamp_sixteen(round_result<T, ftz>(Operation::apply(prepared(first), prepared(rest)...)), after);
    }
};

template <bool ftz, After after>
struct Sixteen<MultiplyAdd, ftz, after> {
    template <typename T>
    static T apply(T a, T b, T c) {
        const auto prepared = [](T value) { return ftz ? flush(value) : value; };
        const float sum = fused_multiply_add_to_odd(prepared(a), prepared(b), prepared(c));
        return clamp_sixteen(round_result<T, ftz>(sum), after);
    }
};

// Minimum and maximum: -0 is below +0; of a number and a NaN the number (with .NaN: NaN).

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

// The sign of a NaN is not touched (measured on H200).

struct Negate {
    template <typename T>
    static T apply(T a) {
        return -a;
    }
};

struct Absolute {
    template <typename T>
    static T apply(T a) {
        return std::fabs(a);
    }
};

// Decoding.

enum class Family : std::uint8_t { add, subtract, multiply, multiply_add, divide, reciprocal, square_root };

struct Variant {
    Type type = Type::f32;
    Rounding rounding = Rounding::nearest;
    bool ftz = false;
    After after = After::nothing;
};

template <typename Operation, typename T, std::size_t sources>
constexpr Execute kExecute = execute_on<Operation, T>(std::make_index_sequence<sources>{});

template <typename Operation, std::size_t sources>
Execute choose_single(const Variant& v) {
    if (v.after == After::relu) return nullptr;
    const bool sat = v.after == After::saturate;
    if (v.ftz) {
        return sat ? kExecute<Single<Operation, true, After::saturate>, float, sources>
                   : kExecute<Single<Operation, true, After::nothing>, float, sources>;
    }
    return sat ? kExecute<Single<Operation, false, After::saturate>, float, sources>
               : kExecute<Single<Operation, false, After::nothing>, float, sources>;
}

template <typename Operation, std::size_t sources>
Execute choose_pair(const Variant& v) {
    if (v.after != After::nothing) return nullptr;
    return v.ftz ? kExecute<PairOfFloats<Single<Operation, true, After::nothing>>, std::uint64_t, sources>
                 : kExecute<PairOfFloats<Single<Operation, false, After::nothing>>, std::uint64_t, sources>;
}

/// The executor of an operation in one rounding mode.
template <typename Operation, std::size_t sources>
Execute choose_rounded(const Variant& v) {
    switch (v.type) {
        case Type::f32:
            return choose_single<Operation, sources>(v);
        case Type::f32x2:
            return choose_pair<Operation, sources>(v);
        case Type::f64:
            return v.ftz || v.after != After::nothing ? nullptr : kExecute<Double<Operation>, double, sources>;
        default:
            return nullptr;
    }
}

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

template <typename Operation, std::size_t sources>
Execute choose_arithmetic(const Variant& v) {
    switch (v.rounding) {
        case Rounding::zero:
            return choose_rounded<Directed<Operation, Rounding::zero>, sources>(v);
        case Rounding::down:
            return choose_rounded<Directed<Operation, Rounding::down>, sources>(v);
        case Rounding::up:
            return choose_rounded<Directed<Operation, Rounding::up>, sources>(v);
        case Rounding::nearest:
            break;
    }
    if (bits_of(v.type) == 16 || v.type == Type::f16x2 || v.type == Type::bf16x2) {
        switch (v.after) {
            case After::nothing:
                return v.ftz ? choose_sixteen<Operation, sources, true, After::nothing>(v.type)
                             : choose_sixteen<Operation, sources, false, After::nothing>(v.type);
            case After::saturate:
                return v.ftz ? choose_sixteen<Operation, sources, true, After::saturate>(v.type)
                             : choose_sixteen<Operation, sources, false, After::saturate>(v.type);
            case After::relu:
                return v.ftz ? choose_sixteen<Operation, sources, true, After::relu>(v.type)
                             : choose_sixteen<Operation, sources, false, After::relu>(v.type);
        }
    }
    return choose_rounded<Operation, sources>(v);
}

std::optional<Rounding> take_rounding(Decoder& d) {
    return d.take_one<Rounding>(
        {{"rn", Rounding::nearest}, {"rz", Rounding::zero}, {"rm", Rounding::down}, {"rp", Rounding::up}});
}

void decode_operands(Decoder& d, Type type, std::size_t sources) {
    d.finish_modifiers();
    d.expect_operands(sources + 1);
    d.result.slots[0] = d.destination(0, type);
    for (std::size_t i = 1; i <= sources; ++i) d.result.slots[i] = d.source(i, type);
}

template <typename Operation, std::size_t sources>
void decode_arithmetic(Decoder& d) {
    constexpr bool kDivides = std::is_same_v<Operation, Divide> || std::is_same_v<Operation, Reciprocal> ||
                              std::is_same_v<Operation, SquareRoot>;
    if (std::is_same_v<Operation, SquareRoot> && d.take("approx")) {
        d.refuse("the bits of this approximation are not documented, so that it cannot be simulated; use .rn");
    }
    const auto rounding = take_rounding(d);
    if (!rounding && (kDivides || std::is_same_v<Operation, MultiplyAdd>))
        d.refuse("the rounding is missing, such as .rn");
    Variant variant;
    variant.rounding = rounding.value_or(Rounding::nearest);
    variant.ftz = d.take("ftz");
    if (!kDivides) {
        variant.after = d.take_one<After>({{"sat", After::saturate}, {"relu", After::relu}}).value_or(After::nothing);
    }
    variant.type = d.take_type();
    const bool only_wide = kDivides && variant.type != Type::f32 && variant.type != Type::f64;
    const bool relu_without_fma = variant.after == After::relu && !std::is_same_v<Operation, MultiplyAdd>;
    const Execute execute = only_wide || relu_without_fma ? nullptr : choose_arithmetic<Operation, sources>(variant);
    d.result.execute = d.required(execute, variant.type);
    decode_operands(d, variant.type, sources);
}

template <bool maximum, bool propagate, std::size_t sources>
Execute choose_extremum(Type type, bool ftz) {
    using Operation = Extremum<maximum, propagate>;
    if (type == Type::f64) {
        return ftz || propagate || sources != 2 ? nullptr : kExecute<Double<Operation>, double, sources>;
    }
    if (type == Type::f32) {
        return ftz ? kExecute<Single<Operation, true, After::nothing>, float, sources>
                   : kExecute<Single<Operation, false, After::nothing>, float, sources>;
    }
    if (sources != 2) return nullptr;
    return ftz ? choose_sixteen<Operation, 2, true, After::nothing>(type)
               : choose_sixteen<Operation, 2, false, After::nothing>(type);
}

template <bool maximum>
void decode_extremum(Decoder& d) {
    const bool propagate = d.take("NaN");
    const bool ftz = d.take("ftz");
    const Type type = d.take_type();
    d.expect_operands(3, 4);
    const bool three = d.operands() == 4;
    const Execute execute = three ? (propagate ? choose_extremum<maximum, true, 3>(type, ftz)
                                               : choose_extremum<maximum, false, 3>(type, ftz))
                                  : (propagate ? choose_extremum<maximum, true, 2>(type, ftz)
                                               : choose_extremum<maximum, false, 2>(type, ftz));
    d.result.execute = d.required(execute, type);
    decode_operands(d, type, three ? 3 : 2);
}

template <typename Operation>
void decode_sign(Decoder& d) {
    const bool ftz = d.take("ftz");
    const Type type = d.take_type();
    Execute execute = nullptr;
    if (type == Type::f32) {
        execute = ftz ? kExecute<Single<Operation, true, After::nothing>, float, 1>
                      : kExecute<Single<Operation, false, After::nothing>, float, 1>;
    } else if (type == Type::f64) {
        execute = ftz ? nullptr : kExecute<Double<Operation>, double, 1>;
    } else {
        execute = ftz ? choose_sixteen<Operation, 1, true, After::nothing>(type)
                      : choose_sixteen<Operation, 1, false, After::nothing>(type);
    }
    d.result.execute = d.required(execute, type);
    decode_operands(d, type, 1);
}

/// The magnitude of b with the sign of a.
struct CopySign {
    template <typename T>
    static T apply(T a, T b) {
        return std::copysign(b, a);
    }
};

void decode_copy_sign(Decoder& d) {
    const Type type = d.take_type();
    d.result.execute = d.required(choose<CopySign, 2, Values<float, Type::f32>, Values<double, Type::f64>>(type), type);
    decode_operands(d, type, 2);
}

void decode_reciprocal(Decoder& d) {
    if (d.take("approx")) {
        decode_reciprocal_approximation(d);
    } else {
        decode_arithmetic<Reciprocal, 1>(d);
    }
}

void decode_division(Decoder& d) {
    const auto full = d.take_one<bool>({{"approx", false}, {"full", true}});
    if (full) {
        decode_quotient_approximation(d, *full);
    } else {
        decode_arithmetic<Divide, 2>(d);
    }
}

constexpr std::array kOpcodes{
    Opcode{"add", decode_arithmetic<Add, 2>},
    Opcode{"sub", decode_arithmetic<Subtract, 2>},
    Opcode{"mul", decode_arithmetic<Multiply, 2>},
    Opcode{"fma", decode_arithmetic<MultiplyAdd, 3>},
    Opcode{"mad", decode_arithmetic<MultiplyAdd, 3>},
    Opcode{"div", decode_division},
    Opcode{"rcp", decode_reciprocal},
    Opcode{"sqrt", decode_arithmetic<SquareRoot, 1>},
    Opcode{"min", decode_extremum<false>},
    Opcode{"max", decode_extremum<true>},
    Opcode{"neg", decode_sign<Negate>},
    Opcode{"abs", decode_sign<Absolute>},
    Opcode{"copysign", decode_copy_sign},
};

}  // namespace

std::span<const Opcode> floating_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
