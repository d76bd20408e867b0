/// Integer arithmetic (PTX ISA 9.7.1 and 9.7.2).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

constexpr std::array kIntegers{TypeName{"u16", 'h'},   TypeName{"s16", 'h'},  TypeName{"u32", 'w'},
                               TypeName{"s32", 'w'},   TypeName{"u64", 'l'},  TypeName{"s64", 'l'},
                               TypeName{"u16x2", 'x'}, TypeName{"s16x2", 'x'}};

/// The kind twice as wide, for the .wide products.
Kind wide(Kind kind) { return kind == 'h' ? 'w' : 'l'; }

void add_sums(FormList& list) {
    for (const auto& [type, kind] : kIntegers) {
        for (const auto& form : combine({{"add", "sub"}, {"", ".sat"}})) {
            list.add(fmt::format("{}.{}", form, type), times(kind), times(kind, 2));
        }
        for (const auto& form : combine({{"min", "max"}, {"", ".relu"}})) {
            list.add(fmt::format("{}.{}", form, type), times(kind), times(kind, 2));
        }
        for (const auto* form : {"div", "rem"}) {
            list.add(fmt::format("{}.{}", form, type), times(kind), times(kind, 2));
        }
        for (const auto* form : {"abs", "neg"}) list.add(fmt::format("{}.{}", form, type), times(kind), times(kind));
        list.add(fmt::format("sad.{}", type), times(kind), times(kind, 3));
    }
}

void add_products(FormList& list) {
    for (const auto& [type, kind] : kIntegers) {
        for (const auto& part : combine({{".lo", ".hi"}, {"", ".sat"}})) {
            list.add(fmt::format("mul{}.{}", part, type), times(kind), times(kind, 2));
            list.add(fmt::format("mad{}.{}", part, type), times(kind), times(kind, 3));
        }
        for (const auto& part : combine({{".lo", ".hi"}, {"", ".sat"}})) {
            list.add(fmt::format("mul24{}.{}", part, type), times(kind), times(kind, 2));
            list.add(fmt::format("mad24{}.{}", part, type), times(kind), times(kind, 3));
        }
        list.add(fmt::format("mul.wide.{}", type), times(wide(kind)), times(kind, 2));
        list.add(fmt::format("mad.wide.{}", type), times(wide(kind)), times(kind, 2) + times(wide(kind)));
    }
    for (const auto& types : combine({{".u32", ".s32"}, {".u32", ".s32"}})) {
        list.add("dp4a" + types, "w", "www");
        for (const auto* part : {".lo", ".hi"}) list.add(std::string("dp2a") + part + types, "w", "www");
    }
}

/// The carry shows in a second result: what an addition with carry makes of zeros.
void add_carries(FormList& list) {
    for (const auto& [type, kind] : kIntegers) {
        const std::string two = times(kind, 2);
        for (const auto* form : {"add", "sub"}) {
            list.add_code(fmt::format("{}.cc.{}", form, type), two, two,
                          fmt::format("{0}.cc.{1} %d0, %a, %b; {0}c.{1} %d1, 0, 0;", form, type));
            list.add_code(
                fmt::format("{}c.cc.{}", form, type), times(kind, 3), times(kind, 4),
                fmt::format("{0}.cc.{1} %d0, %a, %b; {0}c.cc.{1} %d1, %c, %e; {0}c.{1} %d2, 0, 0;", form, type));
        }
        for (const auto* part : {".lo", ".hi"}) {
            list.add_code(fmt::format("mad{}.cc.{}", part, type), two, times(kind, 3),
                          fmt::format("mad{0}.cc.{1} %d0, %a, %b, %c; addc.{1} %d1, 0, 0;", part, type));
            list.add_code(
                fmt::format("madc{}.cc.{}", part, type), two, times(kind, 3),
                fmt::format("add.cc.{1} %d0, %a, %b; madc{0}.cc.{1} %d0, %a, %b, %c; addc.{1} %d1, 0, 0;", part, type));
            list.add_code(fmt::format("madc{}.{}", part, type), times(kind), times(kind, 3),
                          fmt::format("add.cc.{1} %d0, %a, %b; madc{0}.{1} %d0, %a, %b, %c;", part, type));
        }
    }
}

/// The scalar video instructions (PTX ISA 9.7.19), in their basic form, and those on the parts of a register.
void add_video(FormList& list) {
    for (const auto& types : combine({{".u32", ".s32"}, {".u32", ".s32"}, {".u32", ".s32"}})) {
        for (const auto& form : combine({{"vadd", "vsub", "vabsdiff", "vmin", "vmax"}, {types}, {"", ".sat"}})) {
            list.add(form, "w", "ww");
        }
        list.add("vmad" + types, "w", "www");
        for (const auto& form : combine({{"vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vadd4", "vsub4",
                                          "vavrg4", "vabsdiff4", "vmin4", "vmax4"},
                                         {types}})) {
            list.add(form, "w", "www");
        }
    }
    for (const auto& form :
         combine({{"vshl", "vshr"}, {".u32", ".s32"}, {".u32", ".s32"}, {".u32"}, {".clamp", ".wrap"}})) {
        list.add(form, "w", "wa");
    }
    for (const auto& types :
         combine({{".u32", ".s32"}, {".u32", ".s32"}, {".eq", ".ne", ".lt", ".le", ".gt", ".ge"}})) {
        list.add("vset" + types, "w", "ww");
        list.add("vset2" + types, "w", "www");
        list.add("vset4" + types, "w", "www");
    }
}

}  // namespace

void add_integer_forms(FormList& list) {
    list.group("integer arithmetic");
    add_sums(list);
    add_products(list);
    list.group("addition and multiplication with carry");
    add_carries(list);
    list.group("video instructions");
    add_video(list);
}

}  // namespace block_attention::conformance
