#include <array>

#include "verify/simulator/conformance/summary.h"

namespace block_attention::conformance {

namespace {

constexpr std::string_view kUnknownBits = "the unit's table is not published and not measured";
constexpr std::string_view kVideo = "no compiler emits video instructions for kernels of this kind";
constexpr std::string_view kNotInText = "ptxas takes it, but the ISA's text does not have it";

constexpr std::array<Refusal, 26> kRefusals{{
    {"rcp.approx*.f64", kUnknownBits},
    {"sqrt.approx*", kUnknownBits},
    {"rsqrt.approx*", kUnknownBits},
    {"sin.approx*", kUnknownBits},
    {"cos.approx*", kUnknownBits},
    {"lg2.approx*", kUnknownBits},
    {"tanh.approx*", kUnknownBits},
    {"ex2.approx*16*", kUnknownBits},
    {"rcp.r*.ftz.f64", kNotInText},
    {"fma.rz*bf16*", kNotInText},
    {"fma.rm*bf16*", kNotInText},
    {"fma.rp*bf16*", kNotInText},
    {"fma.rn.oob*", "which NaN stands for a value out of bounds is not documented"},
    {"isspacep.const@*", "constant memory has no window of its own in the simulated machine"},
    {"atom*.b128*", "atomic operations on 128 bits are not simulated"},
    {"pmevent*", "there are no performance counters"},
    {"vadd*", kVideo},
    {"vsub*", kVideo},
    {"vabsdiff*", kVideo},
    {"vmin*", kVideo},
    {"vmax*", kVideo},
    {"vavrg*", kVideo},
    {"vmad*", kVideo},
    {"vshl*", kVideo},
    {"vshr*", kVideo},
    {"vset*", kVideo},
}};

}  // namespace

std::span<const Refusal> known_refusals() { return kRefusals; }

}  // namespace block_attention::conformance
