/// Logic, shifts and bit fields (PTX ISA 9.7.1 and 9.7.8).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

constexpr std::array kBits{TypeName{"b16", 'h'}, TypeName{"b32", 'w'}, TypeName{"b64", 'l'}};
constexpr std::array kWide{TypeName{"u32", 'w'}, TypeName{"s32", 'w'}, TypeName{"u64", 'l'},
                           TypeName{"s64", 'l'}, TypeName{"b32", 'w'}, TypeName{"b64", 'l'}};

void add_logic(FormList& list) {
    for (const auto* form : {"and", "or", "xor"}) {
        for (const auto& [type, kind] : kBits) list.add(fmt::format("{}.{}", form, type), times(kind), times(kind, 2));
        list.add(fmt::format("{}.pred", form), "p", "pp");
    }
    for (const auto* form : {"not", "cnot"}) {
        for (const auto& [type, kind] : kBits) list.add(fmt::format("{}.{}", form, type), times(kind), times(kind));
        list.add(fmt::format("{}.pred", form), "p", "p");
    }
    for (unsigned table = 0; table < 256; ++table) {
        list.add_code(fmt::format("lop3.b32@{:#04x}", table), "w", "www",
                      fmt::format("lop3.b32 %d0, %a, %b, %c, {};", table));
    }
    for (const auto* form : {"and", "or"}) {
        list.add_code(fmt::format("lop3.{}.b32", form), "wp", "wwwp",
                      fmt::format("lop3.{}.b32 %d0|%d1, %a, %b, %c, 0x96, %e;", form));
    }
}

void add_shifts(FormList& list) {
    for (const auto& [type, kind] : kBits) {
        list.add(fmt::format("shl.{}", type), times(kind), times(kind) + "a");
        for (const char sign : {'b', 'u', 's'}) {
            list.add(fmt::format("shr.{}{}", sign, type.substr(1)), times(kind), times(kind) + "a");
        }
    }
    for (const auto& form : combine({{"shf"}, {".l", ".r"}, {".clamp", ".wrap"}, {".b32"}})) list.add(form, "w", "wwa");
}

void add_fields(FormList& list) {
    for (const auto& [type, kind] : kWide) {
        list.add(fmt::format("bfe.{}", type), times(kind), times(kind) + "aa");
        list.add(fmt::format("bfi.{}", type), times(kind), times(kind, 2) + "aa");
        for (const auto* form : {"bfind", "bfind.shiftamt", "popc", "clz"}) {
            list.add(fmt::format("{}.{}", form, type), "w", times(kind));
        }
        list.add(fmt::format("brev.{}", type), times(kind), times(kind));
        for (const auto* mode : {".clamp", ".wrap"}) {
            list.add(fmt::format("szext{}.{}", mode, type), times(kind), times(kind) + "a");
            list.add(fmt::format("bmsk{}.{}", mode, type), times(kind), "aa");
        }
    }
    // The offset of the bit that fns looks for is counted from a position of 0 to 31.
    list.add_code("fns.b32", "w", "waa", "and.b32 %b, %b, 31; fns.b32 %d0, %a, %b, %c;");
    for (const auto* mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"}) {
        list.add(fmt::format("prmt.b32{}", mode), "w", "www");
    }
}

}  // namespace

void add_bit_forms(FormList& list) {
    list.group("logic and shifts");
    add_logic(list);
    add_shifts(list);
    list.group("bit fields and permutation");
    add_fields(list);
}

}  // namespace block_attention::conformance
