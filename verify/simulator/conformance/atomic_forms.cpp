/// Atomic operations and reductions (PTX ISA 9.7.13: atom, red), each thread on memory of its own. The modifiers of
/// ordering are there with two operations, since none of them changes data here.
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

struct Place {
    std::string_view space;
    std::string_view note;
    std::string_view setup;
    std::string_view address;
};

constexpr std::array kPlaces{
    Place{".global", "", "", "%mem"},
    Place{"", "@generic-global", "", "%mem"},
    Place{".shared", "", "", "%cell"},
    Place{".shared::cta", "", "", "%cell"},
    Place{".shared::cluster", "", "", "%cell"},
    Place{"", "@generic-shared", "cvt.u64.u32 %xl0, %cell; cvta.shared.u64 %xl0, %xl0; ", "%xl0"},
};

struct Operation {
    std::string_view name;  ///< with a modifier that goes with it
    TypeName type;
};

constexpr std::array kOperations{
    Operation{".and", {"b32", 'w'}},          Operation{".and", {"b64", 'l'}},
    Operation{".or", {"b32", 'w'}},           Operation{".or", {"b64", 'l'}},
    Operation{".xor", {"b32", 'w'}},          Operation{".xor", {"b64", 'l'}},
    Operation{".exch", {"b32", 'w'}},         Operation{".exch", {"b64", 'l'}},
    Operation{".cas", {"b16", 'h'}},          Operation{".cas", {"b32", 'w'}},
    Operation{".cas", {"b64", 'l'}},          Operation{".inc", {"u32", 'w'}},
    Operation{".dec", {"u32", 'w'}},          Operation{".add", {"u32", 'w'}},
    Operation{".add", {"s32", 'w'}},          Operation{".add", {"u64", 'l'}},
    Operation{".add", {"s64", 'l'}},          Operation{".add", {"f32", 'f'}},
    Operation{".add", {"f64", 'd'}},          Operation{".add.noftz", {"f16", 'e'}},
    Operation{".add.noftz", {"f16x2", 'E'}},  Operation{".add.noftz", {"bf16", 'g'}},
    Operation{".add.noftz", {"bf16x2", 'G'}}, Operation{".min", {"u32", 'w'}},
    Operation{".min", {"s32", 'w'}},          Operation{".min", {"u64", 'l'}},
    Operation{".min", {"s64", 'l'}},          Operation{".max", {"u32", 'w'}},
    Operation{".max", {"s32", 'w'}},          Operation{".max", {"u64", 'l'}},
    Operation{".max", {"s64", 'l'}},
};

/// The cell starts as %a; the results are the old value, for atom, and the new one.
void add_operation(FormList& list, std::string_view order, const Place& place, const Operation& operation) {
    const auto& [type, kind] = operation.type;
    const unsigned bits = bits_of(kind);
    const bool swap = operation.name == ".cas";
    const std::string modifiers = fmt::format("{}{}{}.{}", order, place.space, operation.name, type);
    const std::string_view space = place.address == "%cell" ? ".shared" : place.address == "%mem" ? ".global" : "";
    const std::string fill = fmt::format("{}st{}.b{} [{}], %a; ", place.setup, space, bits, place.address);
    const std::string read = fmt::format("ld{}.b{}", space, bits);
    list.add_code(fmt::format("atom{}{}", modifiers, place.note), times(kind, 2), times(kind, swap ? 3 : 2),
                  fmt::format("{}atom{} %d0, [{}], %b{}; {} %d1, [{}];", fill, modifiers, place.address,
                              swap ? ", %c" : "", read, place.address));
    if (swap || operation.name == ".exch") return;
    list.add_code(fmt::format("red{}{}", modifiers, place.note), times(kind), times(kind, 2),
                  fmt::format("{}red{} [{}], %b; {} %d0, [{}];", fill, modifiers, place.address, read, place.address));
}

/// Vectors of floating-point numbers in global memory.
void add_vectors(FormList& list) {
    struct VectorType {
        std::string_view type;
        Kind kind;
        Choices operations;
    };
    const std::array types{VectorType{"f32", 'f', {".add"}},
                           VectorType{"f16", 'e', {".add.noftz", ".min.noftz", ".max.noftz"}},
                           VectorType{"bf16", 'g', {".add.noftz", ".min.noftz", ".max.noftz"}},
                           VectorType{"f16x2", 'E', {".add.noftz", ".min.noftz", ".max.noftz"}},
                           VectorType{"bf16x2", 'G', {".add.noftz", ".min.noftz", ".max.noftz"}}};
    for (const auto& [type, kind, operations] : types) {
        const unsigned bits = bits_of(kind);
        for (const auto& operation : operations) {
            for (const auto* space : {"", ".global"}) {
                const std::string pair = fmt::format("{}.v2.{}", space, type);
                const std::string fill = fmt::format("st.global.v2.b{} [%mem], {{%a, %b}}; ", bits);
                const std::string name = fmt::format("{}{}.v2.{}", space, operation, type);
                list.add_code(
                    "atom" + name, times(kind, 4), times(kind, 4),
                    fmt::format("{}atom{} {{%d0, %d1}}, [%mem], {{%c, %e}}; ld.global.v2.b{} {{%d2, %d3}}, [%mem];",
                                fill, name, bits));
                list.add_code("red" + name, times(kind, 2), times(kind, 4),
                              fmt::format("{}red{} [%mem], {{%c, %e}}; ld.global.v2.b{} {{%d0, %d1}}, [%mem];", fill,
                                          name, bits));
                const std::string four = fmt::format("{}{}.v4.{}", space, operation, type);
                list.add_code(
                    "red" + four, times(kind, 4), times(kind, 4),
                    fmt::format("st.global.v4.b{0} [%mem], {{%a, %b, %c, %e}}; red{1} [%mem], {{%b, %c, %e, %a}}; "
                                "ld.global.v4.b{0} {{%d0, %d1, %d2, %d3}}, [%mem];",
                                bits, four));
            }
        }
    }
}

void add_wide_exchanges(FormList& list) {
    for (const auto& place : kPlaces) {
        const std::string_view space = place.address == "%cell" ? ".shared" : place.address == "%mem" ? ".global" : "";
        const std::string begin = fmt::format(
            "{{ .reg .b128 %old, %new, %compared; {}st{}.v2.b64 [{}], {{%a, %b}}; mov.b128 %new, {{%c, %e}}; ",
            place.setup, space, place.address);
        const std::string end =
            fmt::format("mov.b128 {{%d0, %d1}}, %old; ld{}.v2.b64 {{%d2, %d3}}, [{}]; }}", space, place.address);
        list.add_code(fmt::format("atom{}.exch.b128{}", place.space, place.note), "llll", "llll",
                      fmt::format("{}atom{}.exch.b128 %old, [{}], %new; {}", begin, place.space, place.address, end));
        list.add_code(fmt::format("atom{}.cas.b128{}", place.space, place.note), "llll", "llll",
                      fmt::format("{}mov.b128 %compared, {{%a, %c}}; atom{}.cas.b128 %old, [{}], %compared, %new; {}",
                                  begin, place.space, place.address, end));
    }
}

}  // namespace

void add_atomic_forms(FormList& list) {
    list.group("atomic operations");
    for (const auto& place : kPlaces) {
        for (const auto& operation : kOperations) add_operation(list, "", place, operation);
    }
    const Operation add{".add", {"u32", 'w'}};
    const Operation swap{".cas", {"b64", 'l'}};
    for (const auto& order :
         combine({{"", ".relaxed", ".acquire", ".release", ".acq_rel"}, {"", ".cta", ".cluster", ".gpu", ".sys"}})) {
        if (order.empty()) continue;
        for (const auto& place : kPlaces) {
            add_operation(list, order, place, add);
            add_operation(list, order, place, swap);
        }
    }
    add_wide_exchanges(list);
    list.group("atomic operations on vectors");
    add_vectors(list);
}

}  // namespace block_attention::conformance
