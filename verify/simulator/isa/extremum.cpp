/// Minimum, maximum and sign of floating-point numbers (PTX ISA 9.7.3 to 9.7.5).
#include "verify/simulator/isa/extremum.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/floating_operation.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/lanes.h"

namespace block_attention::simulator {

namespace {

/// The extremum of the magnitudes, with the sign that the operands' product would have (.xorsign.abs). The signs of
/// NaNs count too; a result that is NaN stays the canonical one (measured on H200).
template <bool maximum, bool propagate, bool ftz>
struct XorSignExtremum {
    static float apply(float a, float b) {
        using Magnitude = Single<Extremum<maximum, propagate>, ftz, After::nothing>;
        return with_sign(Magnitude::apply(std::fabs(a), std::fabs(b)), std::signbit(a) != std::signbit(b));
    }
    template <typename T>
    static T apply(T a, T b) {
        using Magnitude = Sixteen<Extremum<maximum, propagate>, ftz, After::nothing>;
        const auto magnitude = [](T value) { return T{static_cast<std::uint16_t>(value.bits & 0x7FFF)}; };
        const float result = to_float(Magnitude::apply(magnitude(a), magnitude(b)));
        return round_to<T>(with_sign(result, (a.bits & 0x8000) != (b.bits & 0x8000)));
    }

  private:
    static float with_sign(float magnitude, bool negative) {
        return magnitude == magnitude && negative ? -magnitude : magnitude;
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

template <bool maximum, bool propagate, bool ftz>
Execute choose_xor_sign_extremum(Type type) {
    using Operation = XorSignExtremum<maximum, propagate, ftz>;
    switch (type) {
        case Type::f32:
            return kExecute<Operation, float, 2>;
        case Type::f16:
            return kExecute<Operation, Half, 2>;
        case Type::f16x2:
            return kExecute<PairOfHalves<Operation, Half>, std::uint32_t, 2>;
        case Type::bf16:
            return ftz ? nullptr : kExecute<Operation, BFloat16, 2>;
        case Type::bf16x2:
            return ftz ? nullptr : kExecute<PairOfHalves<Operation, BFloat16>, std::uint32_t, 2>;
        default:
            return nullptr;
    }
}

template <bool maximum>
Execute choose_xor_sign_extremum(Type type, bool propagate, bool ftz) {
    if (propagate) {
        return ftz ? choose_xor_sign_extremum<maximum, true, true>(type)
                   : choose_xor_sign_extremum<maximum, true, false>(type);
    }
    return ftz ? choose_xor_sign_extremum<maximum, false, true>(type)
               : choose_xor_sign_extremum<maximum, false, false>(type);
}

template <bool maximum>
void decode_extremum(Decoder& d) {
    const bool propagate = d.take("NaN");
    const bool ftz = d.take("ftz");
    const bool xor_sign = d.take("xorsign");
    if (xor_sign && !d.take("abs")) d.refuse("its form is .xorsign.abs");
    const Type type = d.take_type();
    if (xor_sign) {
        d.result.execute = d.required(choose_xor_sign_extremum<maximum>(type, propagate, ftz), type);
        return decode_operands(d, type, 2);
    }
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

constexpr std::array kOpcodes{
    Opcode{"min", decode_extremum<false>}, Opcode{"max", decode_extremum<true>}, Opcode{"neg", decode_sign<Negate>},
    Opcode{"abs", decode_sign<Absolute>},  Opcode{"copysign", decode_copy_sign},
};

}  // namespace

std::span<const Opcode> extremum_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
