/// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5), exact to the bit: IEEE 754 results, NaN results as measured on
/// H200.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/approximate.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/floating_operation.h"
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
    /// On 16-bit values: more than their precision, and rounded so that rounding again is harmless.
    template <typename T>
    static float sixteen(T a, T b, T c) {
        return fused_multiply_add_to_odd(a, b, c);
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

// Decoding.

enum class Family : std::uint8_t { add, subtract, multiply, multiply_add, divide, reciprocal, square_root };

struct Variant {
    Type type = Type::f32;
    Rounding rounding = Rounding::nearest;
    bool ftz = false;
    After after = After::nothing;
};

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
};

}  // namespace

std::span<const Opcode> floating_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
