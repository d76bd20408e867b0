/// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5), without the approximations.
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

constexpr std::array kFloats{TypeName{"f32", 'f'},   TypeName{"f64", 'd'},  TypeName{"f16", 'e'},
                             TypeName{"f16x2", 'E'}, TypeName{"bf16", 'g'}, TypeName{"bf16x2", 'G'}};

void add_arithmetic(FormList& list, std::string_view type, Kind kind) {
    const Choices roundings{"", ".rn", ".rz", ".rm", ".rp"};
    const auto name = [type = type](const std::string& form) { return fmt::format("{}.{}", form, type); };
    for (const auto& form : combine({{"add", "sub", "mul"}, roundings, {"", ".ftz"}, {"", ".sat"}})) {
        list.add(name(form), times(kind), times(kind, 2));
    }
    for (const auto& form :
         combine({{"fma", "mad"}, roundings, {"", ".ftz"}, {"", ".sat", ".relu", ".oob", ".oob.relu"}})) {
        list.add(name(form), times(kind), times(kind, 3));
    }
    for (const auto& form : combine({{"div"}, roundings, {"", ".ftz"}}))
        list.add(name(form), times(kind), times(kind, 2));
    for (const auto& form : combine({{"rcp", "sqrt"}, roundings, {"", ".ftz"}}))
        list.add(name(form), times(kind), times(kind));
    for (const auto& form : combine({{"neg", "abs"}, {"", ".ftz"}})) list.add(name(form), times(kind), times(kind));
    for (const auto& form : combine({{"min", "max"}, {"", ".ftz"}, {"", ".NaN"}, {"", ".xorsign.abs"}})) {
        list.add(name(form), times(kind), times(kind, 2));
        list.add(name(form), times(kind), times(kind, 3), "three");
    }
    list.add(name("copysign"), times(kind), times(kind, 2));
}

}  // namespace

void add_floating_forms(FormList& list) {
    for (const auto& [type, kind] : kFloats) {
        list.group(fmt::format("arithmetic in {}", type));
        add_arithmetic(list, type, kind);
    }
}

}  // namespace block_attention::conformance
