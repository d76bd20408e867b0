/// Comparison and selection (PTX ISA 9.7.6 and 9.7.7), and testp.
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

const Choices kOrdered{".eq", ".ne", ".lt", ".le", ".gt", ".ge"};
const Choices kUnsigned{".lo", ".ls", ".hi", ".hs"};
const Choices kUnordered{".equ", ".neu", ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan"};

struct ComparedType {
    TypeName type;
    bool floating;
};

constexpr std::array kTypes{
    ComparedType{{"b16", 'h'}, false}, ComparedType{{"b32", 'w'}, false}, ComparedType{{"b64", 'l'}, false},
    ComparedType{{"u16", 'h'}, false}, ComparedType{{"u32", 'w'}, false}, ComparedType{{"u64", 'l'}, false},
    ComparedType{{"s16", 'h'}, false}, ComparedType{{"s32", 'w'}, false}, ComparedType{{"s64", 'l'}, false},
    ComparedType{{"f32", 'f'}, true},  ComparedType{{"f64", 'd'}, true},  ComparedType{{"f16", 'e'}, true},
    ComparedType{{"bf16", 'g'}, true},
};

/// The comparisons that a type may have, with .ftz where there could be one.
std::vector<std::string> comparisons(const ComparedType& compared) {
    Choices names = kOrdered;
    const Choices& more = compared.floating ? kUnordered : kUnsigned;
    names.insert(names.end(), more.begin(), more.end());
    return combine({names});
}

Choices flushes(const ComparedType& compared) { return compared.floating ? Choices{"", ".ftz"} : Choices{""}; }

void add_predicates(FormList& list) {
    for (const auto& compared : kTypes) {
        const auto& [type, kind] = compared.type;
        for (const auto& comparison : comparisons(compared)) {
            for (const auto& ftz : flushes(compared)) {
                list.add(fmt::format("setp{}{}.{}", comparison, ftz, type), "p", times(kind, 2));
                list.add(fmt::format("setp{}{}.{}", comparison, ftz, type), "pp", times(kind, 2), "pair");
                for (const auto* combined : {".and", ".or", ".xor"}) {
                    list.add(fmt::format("setp{}{}{}.{}", comparison, combined, ftz, type), "pp", times(kind, 2) + "p");
                }
            }
        }
    }
    // On two values at once, each with a predicate of its own.
    const ComparedType any_float{{"f16", 'E'}, true};
    for (const auto& comparison : comparisons(any_float)) {
        for (const auto& form : combine({{"", ".and", ".or", ".xor"}, {"", ".ftz"}})) {
            const std::string other =
                form.starts_with(".a") || form.starts_with(".o") || form.starts_with(".x") ? "p" : "";
            list.add(fmt::format("setp{}{}.f16x2", comparison, form), "pp", "EE" + other);
            list.add(fmt::format("setp{}{}.bf16x2", comparison, form), "pp", "GG" + other);
        }
    }
}

void add_values(FormList& list) {
    constexpr std::array kResults{TypeName{"u32", 'w'}, TypeName{"s32", 'w'}, TypeName{"f32", 'f'},
                                  TypeName{"f16", 'e'}, TypeName{"u16", 'h'}, TypeName{"s16", 'h'},
                                  TypeName{"bf16", 'g'}};
    for (const auto& compared : kTypes) {
        const auto& [type, kind] = compared.type;
        for (const auto& comparison : comparisons(compared)) {
            for (const auto& ftz : flushes(compared)) {
                for (const auto& result : kResults) {
                    list.add(fmt::format("set{}{}.{}.{}", comparison, ftz, result.name, type), times(result.kind),
                             times(kind, 2));
                }
                for (const auto* combined : {".and", ".or", ".xor"}) {
                    list.add(fmt::format("set{}{}{}.u32.{}", comparison, combined, ftz, type), "w",
                             times(kind, 2) + "p");
                }
            }
        }
    }
    const ComparedType any_float{{"f16", 'E'}, true};
    for (const auto& comparison : comparisons(any_float)) {
        for (const auto* ftz : {"", ".ftz"}) {
            list.add(fmt::format("set{}{}.f16x2.f16x2", comparison, ftz), "E", "EE");
            list.add(fmt::format("set{}{}.bf16x2.bf16x2", comparison, ftz), "G", "GG");
        }
    }
}

void add_selections(FormList& list) {
    constexpr std::array kSelected{TypeName{"b16", 'h'}, TypeName{"b32", 'w'}, TypeName{"b64", 'l'},
                                   TypeName{"u16", 'h'}, TypeName{"u32", 'w'}, TypeName{"u64", 'l'},
                                   TypeName{"s16", 'h'}, TypeName{"s32", 'w'}, TypeName{"s64", 'l'},
                                   TypeName{"f32", 'f'}, TypeName{"f64", 'd'}};
    for (const auto& [type, kind] : kSelected) {
        list.add(fmt::format("selp.{}", type), times(kind), times(kind, 2) + "p");
        list.add(fmt::format("slct.{}.s32", type), times(kind), times(kind, 2) + "w");
        list.add(fmt::format("slct.{}.f32", type), times(kind), times(kind, 2) + "f");
        list.add(fmt::format("slct.ftz.{}.f32", type), times(kind), times(kind, 2) + "f");
    }
    for (const auto& property :
         combine({{".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"}})) {
        list.add(fmt::format("testp{}.f32", property), "p", "f");
        list.add(fmt::format("testp{}.f64", property), "p", "d");
    }
}

}  // namespace

void add_compare_forms(FormList& list) {
    list.group("comparison");
    add_predicates(list);
    add_values(list);
    list.group("selection");
    add_selections(list);
}

}  // namespace block_attention::conformance
