/// Approximations (PTX ISA 9.7.3 and 9.7.4: .approx and .full).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

constexpr std::array kFloats{TypeName{"f32", 'f'},   TypeName{"f64", 'd'},  TypeName{"f16", 'e'},
                             TypeName{"f16x2", 'E'}, TypeName{"bf16", 'g'}, TypeName{"bf16x2", 'G'}};

}  // namespace

void add_approximate_forms(FormList& list) {
    list.group("approximations");
    for (const auto& [type, kind] : kFloats) {
        for (const auto& form :
             combine({{"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"}, {".approx"}, {"", ".ftz"}})) {
            list.add(fmt::format("{}.{}", form, type), times(kind), times(kind));
        }
        for (const auto& form : combine({{"div"}, {".approx", ".full"}, {"", ".ftz"}})) {
            list.add(fmt::format("{}.{}", form, type), times(kind), times(kind, 2));
        }
    }
}

}  // namespace block_attention::conformance
