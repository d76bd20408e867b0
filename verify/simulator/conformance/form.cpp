#include "verify/simulator/conformance/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace block_attention::conformance {

namespace {

struct KindDescription {
    Kind kind;
    std::string_view register_type;
    unsigned bits;
};

constexpr std::array kKinds{
    KindDescription{'p', "pred", 1}, KindDescription{'h', "b16", 16}, KindDescription{'w', "b32", 32},
    KindDescription{'l', "b64", 64}, KindDescription{'a', "b32", 32}, KindDescription{'e', "b16", 16},
    KindDescription{'g', "b16", 16}, KindDescription{'f', "b32", 32}, KindDescription{'d', "b64", 64},
    KindDescription{'E', "b32", 32}, KindDescription{'G', "b32", 32}, KindDescription{'x', "b32", 32},
};

const KindDescription& describe(Kind kind) {
    const auto* found = std::ranges::find(kKinds, kind, &KindDescription::kind);
    if (found == kKinds.end()) throw std::invalid_argument(fmt::format("no kind of operand is called '{}'", kind));
    return *found;
}

constexpr std::string_view kOperandNames = "abce";

/// Whether the code mentions a name that has to be set up.
bool mentions(const Form& form, std::string_view name) { return form.code.find(name) != std::string::npos; }

std::string declarations(const Form& form) {
    std::string text =
        ".reg .b64 %own, %results, %mem, %offset, %xl<4>;\n"
        ".reg .b32 %thread, %lane, %number, %cell, %bit, %xw<4>;\n"
        ".reg .b16 %xh<4>;\n.reg .pred %xp<4>;\n";
    for (std::size_t k = 0; k < form.operands.size(); ++k) {
        text += fmt::format(".reg .{} %{};\n", register_type(form.operands[k]), kOperandNames[k]);
    }
    for (std::size_t k = 0; k < form.results.size(); ++k) {
        text += fmt::format(".reg .{} %d{};\n", register_type(form.results[k]), k);
    }
    if (mentions(form, "stack")) text += fmt::format(".local .align 32 .b8 stack[{}];\n", kMemoryBytes);
    if (mentions(form, "%cell")) {
        text += fmt::format(".shared .align 32 .b8 cells[{}];\n", kThreads * kMemoryBytes);
    }
    return text;
}

std::string prologue(const Form& form) {
    std::string text = fmt::format(
        "mov.u32 %thread, %tid.x;\nmov.u32 %number, %ctaid.x;\nmad.lo.u32 %number, %number, {}, %thread;\n"
        "mul.wide.u32 %offset, %number, 8;\n"
        "ld.param.u64 %own, [p_operands];\nadd.u64 %own, %own, %offset;\n"
        "ld.param.u64 %results, [p_results];\nadd.u64 %results, %results, %offset;\n",
        kThreads);
    if (mentions(form, "%lane")) text += "and.b32 %lane, %thread, 31;\n";
    if (mentions(form, "%mem")) {
        text += fmt::format(
            "ld.param.u64 %mem, [p_memory];\nmul.wide.u32 %offset, %number, {};\nadd.u64 %mem, %mem, %offset;\n",
            kMemoryBytes);
    }
    if (mentions(form, "%cell")) {
        text += fmt::format("mov.u32 %cell, cells;\nmad.lo.u32 %cell, %thread, {}, %cell;\n", kMemoryBytes);
    }
    for (std::size_t k = 0; k < form.operands.size(); ++k) {
        const char name = kOperandNames[k];
        const std::size_t offset = k * kTupleStride;
        if (form.operands[k] == 'p') {
            text += fmt::format("ld.global.u32 %bit, [%own+{}];\nsetp.ne.u32 %{}, %bit, 0;\n", offset, name);
        } else {
            text += fmt::format("ld.global.b{} %{}, [%own+{}];\n", bits_of(form.operands[k]), name, offset);
        }
    }
    return text;
}

std::string epilogue(const Form& form) {
    std::string text;
    for (std::size_t k = 0; k < form.results.size(); ++k) {
        const std::size_t offset = k * kTupleStride;
        if (form.results[k] == 'p') {
            text += fmt::format("selp.u32 %bit, 1, 0, %d{};\nst.global.u32 [%results+{}], %bit;\n", k, offset);
        } else {
            text += fmt::format("st.global.b{} [%results+{}], %d{};\n", bits_of(form.results[k]), offset, k);
        }
    }
    return text;
}

}  // namespace

std::string_view register_type(Kind kind) { return describe(kind).register_type; }
unsigned bits_of(Kind kind) { return describe(kind).bits; }

std::string kernel_text(const Form& form, std::string_view kernel) {
    return fmt::format(
        ".visible .entry {}(.param .u64 p_operands, .param .u64 p_results, .param .u64 p_memory, .param .align 32 .b8 "
        "bytes[{}])\n{{\n{}{}{}\n{}ret;\n}}\n",
        kernel, kMemoryBytes, declarations(form), prologue(form), form.code, epilogue(form));
}

std::string module_header() {
    std::string bytes;
    for (unsigned i = 0; i < 64; ++i) bytes += fmt::format("{}{}", i == 0 ? "" : ", ", i * 37 % 256);
    return fmt::format(".version 9.0\n.target sm_90a\n.address_size 64\n.const .align 32 .b8 table[64] = {{{}}};\n",
                       bytes);
}

void FormList::add(const std::string& opcode, Kinds results, Kinds operands, std::string_view note) {
    std::string code = opcode + " ";
    for (std::size_t k = 0; k < results.size(); ++k) code += fmt::format("{}%d{}", k == 0 ? "" : "|", k);
    for (std::size_t k = 0; k < operands.size(); ++k) {
        code += fmt::format("{}%{}", k + results.size() == 0 ? "" : ", ", kOperandNames[k]);
    }
    add_code(note.empty() ? opcode : fmt::format("{}@{}", opcode, note), results, operands, code + ";");
}

void FormList::add_code(std::string name, Kinds results, Kinds operands, std::string code) {
    forms_.push_back({std::move(name), group_, std::move(code), std::string(results), std::string(operands)});
}

std::vector<std::string> combine(const std::vector<Choices>& choices) {
    std::vector<std::string> texts{""};
    for (const auto& next : choices) {
        std::vector<std::string> longer;
        for (const auto& text : texts) {
            for (const auto& choice : next) longer.push_back(text + choice);
        }
        texts = std::move(longer);
    }
    return texts;
}

}  // namespace block_attention::conformance
