/// Approximations (PTX ISA 9.7.3: .approx). Those whose bits were measured are exact; the others are refused by name,
/// since a guess would not be what the hardware computes.
#include "verify/simulator/isa/approximate.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "verify/simulator/isa/flush.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/special_functions.h"

namespace block_attention::simulator {

namespace {

constexpr std::string_view kUndocumented =
    "the bits of this approximation are not documented and not measured, so that it cannot be simulated";

template <std::uint32_t (*function)(std::uint32_t)>
struct Function {
    static std::uint32_t apply(std::uint32_t x) { return function(x); }
};

template <std::uint32_t (*function)(std::uint32_t)>
constexpr Execute kExecute = &execute_lanes<Function<function>, std::uint32_t, std::uint32_t>;

void decode_unary(Decoder& d, Execute execute) {
    d.result.execute = execute;
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::f32);
    d.result.slots[1] = d.source(1, Type::f32);
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// What the special-function unit makes of a number: results and arguments below the least normal number are zeros.
float reciprocal(float x) { return std::bit_cast<float>(reciprocal_approximation_ftz(bits(x))); }

constexpr float kLeastNormal = 0x1p-126F;
constexpr float kUp = 0x1p24F;    ///< makes a subnormal number normal
constexpr float kDown = 0x1p-2F;  ///< brings what is above kLarge to where its reciprocal is normal
constexpr float kLarge = 0x1p126F;

// What ptxas makes of the other forms for sm_90: the unit's reciprocal, and products that keep its argument and its
// result within the normal numbers.

struct FullReciprocal {
    static float apply(float x) {
        const float magnitude = std::fabs(x);
        const float scale = magnitude > kLarge ? kDown : magnitude < kLeastNormal ? kUp : 1.0F;
        return canonical(reciprocal(x * scale) * scale);
    }
};

/// div.approx.f32 and div.full.f32, which also scales large divisors.
template <bool full>
struct Quotient {
    static float apply(float a, float b) {
        const float magnitude = std::fabs(b);
        const float scale = full && magnitude > kLarge ? kDown : magnitude < kLeastNormal ? kUp : 1.0F;
        return canonical(reciprocal(b * scale) * (a * scale));
    }
};

template <bool full>
struct QuotientFlushed {
    static float apply(float a, float b) {
        const float scale = full && std::fabs(b) > kLarge ? kDown : 1.0F;
        return multiply_flushed(reciprocal(multiply_flushed(b, scale)), multiply_flushed(a, scale));
    }
};

void decode_exp2(Decoder& d) {
    d.take("approx");
    const bool ftz = d.take("ftz");
    if (d.take_type() != Type::f32) d.refuse(kUndocumented);
    decode_unary(d, ftz ? kExecute<exp2_approximation_ftz> : kExecute<exp2_approximation>);
}

void refuse(Decoder& d) { d.refuse(kUndocumented); }

constexpr std::array kOpcodes{
    Opcode{"ex2", decode_exp2}, Opcode{"lg2", refuse},   Opcode{"sin", refuse},
    Opcode{"cos", refuse},      Opcode{"rsqrt", refuse}, Opcode{"tanh", refuse},
};

}  // namespace

void decode_reciprocal_approximation(Decoder& d) {
    const bool ftz = d.take("ftz");
    if (d.take_type() != Type::f32) d.refuse(kUndocumented);
    decode_unary(d, ftz ? kExecute<reciprocal_approximation_ftz> : &execute_lanes<FullReciprocal, float, float>);
}

void decode_quotient_approximation(Decoder& d, bool full) {
    const bool ftz = d.take("ftz");
    if (d.take_type() != Type::f32) d.refuse("its type is .f32");
    if (full) {
        d.result.execute = ftz ? &execute_lanes<QuotientFlushed<true>, float, float, float>
                               : &execute_lanes<Quotient<true>, float, float, float>;
    } else {
        d.result.execute = ftz ? &execute_lanes<QuotientFlushed<false>, float, float, float>
                               : &execute_lanes<Quotient<false>, float, float, float>;
    }
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots = {d.destination(0, Type::f32), d.source(1, Type::f32), d.source(2, Type::f32)};
}

std::span<const Opcode> approximate_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
