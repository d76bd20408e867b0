/// Conversions (PTX ISA 9.7.9: cvt, cvt.pack).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

/// Values of 8 bits have their place in the low bits of a 32-bit register.
constexpr std::array kScalars{TypeName{"u8", 'w'},  TypeName{"s8", 'w'},   TypeName{"u16", 'h'}, TypeName{"s16", 'h'},
                              TypeName{"u32", 'w'}, TypeName{"s32", 'w'},  TypeName{"u64", 'l'}, TypeName{"s64", 'l'},
                              TypeName{"f16", 'e'}, TypeName{"bf16", 'g'}, TypeName{"f32", 'f'}, TypeName{"f64", 'd'}};

void add_scalar_pairs(FormList& list) {
    const auto modifiers = combine({{"", ".rn", ".rz", ".rm", ".rp", ".rni", ".rzi", ".rmi", ".rpi"},
                                    {"", ".ftz"},
                                    {"", ".sat", ".relu", ".satfinite", ".relu.satfinite"}});
    for (const auto& to : kScalars) {
        for (const auto& from : kScalars) {
            for (const auto& modifier : modifiers) {
                list.add(fmt::format("cvt{}.{}.{}", modifier, to.name, from.name), times(to.kind), times(from.kind));
            }
        }
    }
}

/// Registers wider than the types: a source's upper bits are ignored, a destination's are extended (PTX ISA 9.4.1).
void add_wide_registers(FormList& list) {
    constexpr std::array kNarrow{TypeName{"u8", 'h'},  TypeName{"s8", 'h'},  TypeName{"u8", 'l'},  TypeName{"s8", 'l'},
                                 TypeName{"u16", 'w'}, TypeName{"s16", 'w'}, TypeName{"u16", 'l'}, TypeName{"s16", 'l'},
                                 TypeName{"u32", 'l'}, TypeName{"s32", 'l'}};
    for (const auto& wide : kNarrow) {
        const std::string note = fmt::format("{}-bit-register", bits_of(wide.kind));
        for (const auto& other : kScalars) {
            for (const auto& modifier : {"", ".sat", ".rn", ".rzi"}) {
                list.add(fmt::format("cvt{}.{}.{}", modifier, other.name, wide.name), times(other.kind),
                         times(wide.kind), "from-" + note);
                list.add(fmt::format("cvt{}.{}.{}", modifier, wide.name, other.name), times(wide.kind),
                         times(other.kind), "to-" + note);
            }
        }
    }
}

/// Conversions to and from packed and short types.
void add_packed(FormList& list) {
    const auto from_pair = combine({{".rn", ".rz", ".rna"}, {"", ".ftz"}, {"", ".relu"}, {"", ".satfinite", ".sat"}});
    for (const auto& modifier : from_pair) {
        list.add(fmt::format("cvt{}.f16x2.f32", modifier), "E", "ff");
        list.add(fmt::format("cvt{}.bf16x2.f32", modifier), "G", "ff");
        list.add(fmt::format("cvt{}.tf32.f32", modifier), "w", "f");
    }
    for (const auto& order :
         combine({{".satfinite", ".relu.satfinite", ".satfinite.relu", "", ".relu"}, {".e4m3x2", ".e5m2x2"}})) {
        list.add(fmt::format("cvt.rn{}.f32", order), "h", "ff");
        list.add(fmt::format("cvt.rn{}.f16x2", order), "h", "E");
        list.add(fmt::format("cvt.rn{}.bf16x2", order), "h", "G");
    }
    for (const auto& from : combine({{"", ".relu"}, {".f16x2"}, {".e4m3x2", ".e5m2x2"}}))
        list.add("cvt.rn" + from, "E", "h");
    for (const auto& from : combine({{"", ".relu"}, {".bf16x2"}, {".e4m3x2", ".e5m2x2"}}))
        list.add("cvt.rn" + from, "G", "h");
    for (const auto* type : {"u16", "s16"}) list.add(fmt::format("cvt.pack.sat.{}.s32", type), "w", "ww");
    for (const auto* type : {"u8", "s8", "u4", "s4", "u2", "s2"}) {
        list.add(fmt::format("cvt.pack.sat.{}.s32.b32", type), "w", "www");
    }
}

}  // namespace

void add_conversion_forms(FormList& list) {
    list.group("conversion");
    add_scalar_pairs(list);
    add_wide_registers(list);
    list.group("conversion of packed and short types");
    add_packed(list);
}

}  // namespace block_attention::conformance
