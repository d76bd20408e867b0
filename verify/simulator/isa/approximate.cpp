/// Approximations (PTX ISA 9.7.3: .approx). Those whose bits were measured are exact; the others are refused by name,
/// since a guess would not be what the hardware computes.
#include "verify/simulator/isa/approximate.h"

#include <array>
#include <cstdint>

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
    if (!d.take("ftz") || d.take_type() != Type::f32) d.refuse(kUndocumented);
    decode_unary(d, kExecute<reciprocal_approximation_ftz>);
}

std::span<const Opcode> approximate_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
