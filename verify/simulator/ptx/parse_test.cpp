#include "verify/simulator/ptx/parse.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace block_attention::simulator::ptx {
namespace {

using Kind = Operand::Kind;
using namespace std::string_literals;

const std::string kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

Module parse_module(const std::string& declarations) { return parse(kHeader + declarations, "t.ptx"); }

/// A module with one kernel of that body, which has some registers.
Module parse_body(const std::string& body) {
    return parse_module(
        ".global .b32 global_variable[8];\n.func device_function();\n"
        ".entry k(.param .u64 p0, .param .align 8 .b8 p1[24]) {\n"
        ".reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<10>;\n" +
        body + "\n}\n");
}

const Function& kernel(const Module& module) {
    const Function* function = module.find_kernel("k");
    REQUIRE(function != nullptr);
    return *function;
}

const Instruction& first(const Module& module) {
    REQUIRE(!kernel(module).instructions.empty());
    return kernel(module).instructions.front();
}

/// The first operand of an instruction. Its name is gone with its module.
Operand operand_of(const std::string& text) { return first(parse_body("op " + text + ";")).operands.at(0); }

std::vector<int> initial(const std::string& declaration) {
    std::vector<int> bytes;
    const Module module = parse_module(declaration);
    for (const std::byte byte : module.variables.at(0).initial) {
        bytes.push_back(std::to_integer<int>(byte));
    }
    return bytes;
}

TEST_CASE("the head of a module") {
    const Module module = parse("// comment\n.version 8.7\n.target sm_100a, debug\n", "t.ptx");
    CHECK(module.version_major == 8);
    CHECK(module.version_minor == 7);
    CHECK(module.target == "sm_100a");
    CHECK(module.path == "t.ptx");
}

TEST_CASE("variables of module scope") {
    const Module module = parse_module(
        ".extern .shared .align 128 .b8 dynamic[];\n"
        ".visible .global .align 4 .b8 a[3][5], b;\n"
        ".const .f64 c = 0d3FF8000000000000;\n"
        ".weak .shared .align 1024 .b128 d[2];\n"
        ".common .global .u16 e;\n");
    REQUIRE(module.variables.size() == 6);
    const std::vector<Variable>& v = module.variables;
    CHECK(v[0].name == "dynamic");
    CHECK(v[0].space == Space::shared);
    CHECK(v[0].alignment == 128);
    CHECK(v[0].bytes == 0);
    CHECK(v[0].external);
    CHECK(v[1].bytes == 15);
    CHECK(v[1].alignment == 4);
    CHECK_FALSE(v[1].external);
    CHECK(v[2].name == "b");
    CHECK(v[2].bytes == 1);
    CHECK(v[2].alignment == 4);
    CHECK(v[3].space == Space::constant);
    CHECK(v[3].alignment == 8);
    CHECK(v[4].bytes == 32);
    CHECK(v[4].alignment == 1024);
    CHECK(v[5].alignment == 2);
    CHECK(v[1].initial.empty());
    CHECK(v[1].position.line == 5);
    CHECK(v[1].position.column == 31);
}

TEST_CASE("initial values become bytes, lowest first") {
    using Bytes = std::vector<int>;
    CHECK(initial(".global .b8 a[4] = {1, 0xff, -2};") == Bytes{1, 255, 254, 0});
    CHECK(initial(".global .u16 a = -3;") == Bytes{253, 255});
    CHECK(initial(".global .u32 a[2] = {0x01020304, 017};") == Bytes{4, 3, 2, 1, 15, 0, 0, 0});
    CHECK(initial(".global .u64 a = -1;") == Bytes(8, 255));
    CHECK(initial(".global .s16 a[2][2] = {{1}, {2, 3}};") == Bytes{1, 0, 0, 0, 2, 0, 3, 0});
    CHECK(initial(".global .b8 a[2][3] = {{}, {7}};") == Bytes{0, 0, 0, 7, 0, 0});
    CHECK(initial(".global .b8 a[] = {5, 6};") == Bytes{5, 6});
    CHECK(initial(".global .b8 a[][2] = {{5}, {6}};") == Bytes{5, 0, 6, 0});
    CHECK(initial(".global .f32 a = 0f3F800000;") == Bytes{0, 0, 128, 63});
    CHECK(initial(".global .f32 a = 1.5;") == Bytes{0, 0, 192, 63});
    CHECK(initial(".global .f32 a = -1.5;") == Bytes{0, 0, 192, 191});
    CHECK(initial(".const .f32 a = 0d3FF8000000000000;") == Bytes{0, 0, 192, 63});
    CHECK(initial(".const .f64 a = 0f3FC00000;") == Bytes{0, 0, 0, 0, 0, 0, 248, 63});
    CHECK(initial(".const .b32 a = 0f3F800000;") == Bytes{0, 0, 128, 63});
    CHECK(initial(".const .b128 a = -2;") ==
          Bytes{254, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255});
}

TEST_CASE("the head of a kernel") {
    const Module module = parse_module(
        ".visible .entry k(\n"
        "  .param .u64 .ptr .global .align 16 a,\n"
        "  .param .u64 .ptr .align 1 b, .param .u8 c,\n"
        "  .param .align 128 .b8 map[128]\n)\n"
        ".maxntid 128, 2\n.minnctapersm 2\n.maxnreg 168\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n"
        ".maxclusterrank 8\n{ ret; }\n"
        ".entry empty() .reqntid 64 { ret; }\n.entry bare { ret; }\n");
    const Function& k = kernel(module);
    REQUIRE(k.parameters.size() == 4);
    CHECK(k.parameters[0].bytes == 8);
    CHECK(k.parameters[0].alignment == 8);
    CHECK(k.parameters[1].alignment == 8);
    CHECK(k.parameters[2].bytes == 1);
    CHECK(k.parameters[3].name == "map");
    CHECK(k.parameters[3].bytes == 128);
    CHECK(k.parameters[3].alignment == 128);
    CHECK(k.parameters[3].space == Space::param);
    CHECK(k.variables.size() == 4);
    CHECK(k.max_threads == std::vector<std::uint32_t>{128, 2});
    CHECK(k.required_cluster == std::vector<std::uint32_t>{2, 1, 1});
    CHECK(k.max_registers == 168);
    CHECK_FALSE(k.required_threads);
    CHECK(k.entry);
    CHECK(k.position.line == 4);
    CHECK(module.find_kernel("empty")->parameters.empty());
    CHECK(module.find_kernel("empty")->required_threads == std::vector<std::uint32_t>{64});
    CHECK(module.find_kernel("bare") != nullptr);
    CHECK(module.find_kernel("none") == nullptr);
}

TEST_CASE("device functions: declared, defined, recursive") {
    const Module module = parse_module(
        ".extern .func  (.param .b32 r) vprintf\n(\n .param .b64 a,\n .param .b64 b\n)\n;\n"
        ".func f(.param .b32 x) .noreturn;\n"
        ".weak .func (.param .align 4 .b8 r[12]) g(.param .b32 x)\n{\n"
        " { .param .b32 a; call.uni f, (a); }\n call g, (x);\n st.param.b32 [r+8], 1;\n ret;\n}\n"
        ".func f(.param .b32 x) .noreturn { trap; }\n");
    REQUIRE(module.functions.size() == 3);
    CHECK(module.functions[0].name == "vprintf");
    CHECK_FALSE(module.functions[0].has_body);
    CHECK(module.functions[0].results.size() == 1);
    CHECK(module.functions[1].name == "f");
    CHECK(module.functions[1].has_body);
    CHECK(module.functions[1].instructions.size() == 1);
    const Function& g = module.functions[2];
    REQUIRE(g.variables.size() == 3);
    CHECK(g.variables[0].name == "x");
    CHECK(g.variables[1].name == "r");
    CHECK(g.variables[2].name == "a");
    CHECK(g.instructions[0].operands[0].kind == Kind::function);
    CHECK(g.instructions[0].operands[0].name == "f");
    CHECK(g.instructions[0].operands[0].index == 1);
    CHECK(g.instructions[1].operands[0].name == "g");
    CHECK(g.instructions[2].operands[0].elements[0].index == 1);
    CHECK(module.find_kernel("g") == nullptr);
}

TEST_CASE("opcode, modifiers and guard") {
    const Module module = parse_body(
        "@!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint\n"
        "  [%r1],\n  [%rd1, {%r2, -3}], [%r3], %rd2;\n@%p2 tcgen05.fence::before_thread_sync;ret;");
    const std::vector<Instruction>& i = kernel(module).instructions;
    REQUIRE(i.size() == 3);
    CHECK(i[0].opcode == "cp");
    CHECK(i[0].modifiers == std::vector<std::string_view>{"async", "bulk", "tensor", "2d", "shared::cluster", "global",
                                                          "mbarrier::complete_tx::bytes", "L2::cache_hint"});
    REQUIRE(i[0].guard);
    CHECK(i[0].guard->negated);
    CHECK(i[0].guard->predicate == 1);
    CHECK(i[0].position.line == 8);
    CHECK(i[0].position.column == 1);
    CHECK(i[0].operands.size() == 4);
    CHECK(i[1].opcode == "tcgen05");
    CHECK(i[1].modifiers == std::vector<std::string_view>{"fence::before_thread_sync"});
    CHECK_FALSE(i[1].guard->negated);
    CHECK(i[1].operands.empty());
    CHECK(i[2].opcode == "ret");
    CHECK_FALSE(i[2].guard);
    CHECK(i[2].position.column == 40);
}

TEST_CASE("numbers as operands") {
    const auto integer = [](const std::string& text) {
        const Operand operand = operand_of(text);
        CHECK(operand.kind == Kind::integer);
        return operand.integer;
    };
    CHECK(integer("12") == 12);
    CHECK(integer("-16777224") == -16777224);
    CHECK(integer("0xffffffff") == 0xffffffff);
    CHECK(integer("0xFFFFFFFFFFFFFFFF") == -1);
    CHECK(integer("4611686293305360384U") == 4611686293305360384);
    CHECK(operand_of("0f3F800000").kind == Kind::floating);
    CHECK(operand_of("0f3F800000").float_bits == 32);
    CHECK(operand_of("0f3F800000").integer == 0x3f800000);
    CHECK(operand_of("-1.5").float_bits == 64);
    CHECK(operand_of("-1.5").integer == static_cast<std::int64_t>(0xbff8000000000000));
}

TEST_CASE("registers, negated ones, sinks and pairs") {
    CHECK(operand_of("%r3").kind == Kind::register_);
    CHECK(operand_of("%r3").index == 4 + 3);
    CHECK(operand_of("!%p2").negated);
    CHECK(operand_of("!%p2").index == 2);
    CHECK(operand_of("-%r3").negated);
    CHECK(operand_of("_").kind == Kind::sink);
    const Operand pair = operand_of("_|%p1");
    CHECK(pair.kind == Kind::pair);
    CHECK(pair.elements.at(0).kind == Kind::sink);
    CHECK(pair.elements.at(1).index == 1);
    CHECK(operand_of("%r1 | %p1").elements.at(0).index == 4 + 1);
}

TEST_CASE("vectors of up to 128 elements") {
    const Operand vector = operand_of("{%r1, _, 7, %p1}");
    CHECK(vector.kind == Kind::vector);
    REQUIRE(vector.elements.size() == 4);
    CHECK(vector.elements[1].kind == Kind::sink);
    CHECK(vector.elements[2].integer == 7);
    CHECK(operand_of("{%r1}").elements.size() == 1);
    std::string text = "{%r0";
    for (int i = 1; i < 128; ++i) text += ",\n%r" + std::to_string(i % 10);
    CHECK(operand_of(text + "}").elements.size() == 128);
}

TEST_CASE("addresses") {
    const Operand plain = operand_of("[%rd1]");
    CHECK(plain.kind == Kind::address);
    CHECK(plain.integer == 0);
    CHECK(plain.elements.at(0).kind == Kind::register_);
    CHECK(operand_of("[%rd1+16]").integer == 16);
    CHECK(operand_of("[%rd1+-16]").integer == -16);
    CHECK(operand_of("[%rd1 + 0x10]").integer == 16);
    CHECK(operand_of("[64]").elements.at(0).integer == 64);
    const Operand parameter = operand_of("[p1+8]");
    CHECK(parameter.elements.at(0).kind == Kind::variable);
    CHECK_FALSE(parameter.elements.at(0).module_scope);
    CHECK(parameter.elements.at(0).index == 1);
    CHECK(parameter.integer == 8);
    CHECK(operand_of("[global_variable]").elements.at(0).module_scope);
    const Operand tensor = operand_of("[%rd1, {0, %r1, %r2}]");
    CHECK(tensor.kind == Kind::tensor_address);
    REQUIRE(tensor.elements.size() == 4);
    CHECK(tensor.elements[0].kind == Kind::register_);
    CHECK(tensor.elements[1].kind == Kind::integer);
}

TEST_CASE("variables and functions as operands") {
    const Operand variable = operand_of("global_variable+4");
    CHECK(variable.kind == Kind::variable);
    CHECK(variable.module_scope);
    CHECK(variable.index == 0);
    CHECK(variable.integer == 4);
    CHECK(operand_of("p1+-4").integer == -4);
    CHECK(operand_of("device_function").kind == Kind::function);
}

TEST_CASE("special registers yield to declared ones") {
    for (const std::string name : {"%tid.x", "%cluster_ctaid.z", "%laneid", "%clock64", "%envreg31", "WARP_SZ"}) {
        CAPTURE(name);
        const Module special = parse_body("op " + name + ";");
        CHECK(first(special).operands.at(0).kind == Kind::special_register);
        CHECK(first(special).operands.at(0).name == name);
    }
    const Module module = parse_body(".reg .b32 %laneid; mov.u32 %laneid, %tid.y;");
    CHECK(first(module).operands.at(0).kind == Kind::register_);
    CHECK(first(module).operands.at(1).name == "%tid.y");
}

TEST_CASE("calls over several lines") {
    const Module module = parse_body(
        "{ // callseq 0, 0\n.param .b64 param0;\nst.param.b64 [param0], %rd1;\n.param .align 8 .b8 retval0[16];\n"
        "call.uni (retval0), \ndevice_function, \n(\nparam0, 3\n);\ncall device_function, ();\n} // callseq 0");
    const std::vector<Instruction>& i = kernel(module).instructions;
    REQUIRE(i.size() == 3);
    REQUIRE(i[1].operands.size() == 3);
    CHECK(i[1].operands[0].kind == Kind::list);
    CHECK(i[1].operands[0].elements.at(0).index == 3);
    CHECK(i[1].operands[1].kind == Kind::function);
    CHECK(i[1].operands[2].elements.size() == 2);
    CHECK(i[2].operands[1].elements.empty());
    CHECK(kernel(module).variables.at(3).bytes == 16);
    CHECK(kernel(module).variables.at(3).space == Space::param);
}

TEST_CASE("registers of every class, with any name") {
    const Module module = parse_module(
        ".entry k() { .reg .pred P, px; .reg .b8 a; .reg .f16 %h<2>; .reg .f32 f0; .reg .f64 %fd<2>;\n"
        "op f0; .reg .b128 clc; .reg .s64 $x; { .reg .u16 remAddr; } ret; }");
    const std::vector<Register>& r = kernel(module).registers;
    using Class = RegisterClass;
    const std::vector<Class> expected{Class::predicate, Class::predicate, Class::b8,  Class::b16,
                                      Class::b16,       Class::b32,       Class::b64, Class::b64,
                                      Class::b128,      Class::b64,       Class::b16};
    REQUIRE(r.size() == expected.size());
    for (std::size_t i = 0; i < r.size(); ++i) CHECK(r[i].register_class == expected[i]);
    CHECK(r[1].name == "px");
    CHECK(first(module).operands[0].index == 5);
}

TEST_CASE("a register of a range is named by its first use") {
    const Module module = parse_body("mov.b32 %r7, 1;");
    CHECK(kernel(module).registers.at(4 + 7).name == "%r7");
    CHECK(kernel(module).registers.at(4 + 6).name == "%r");
}

TEST_CASE("variables inside a function") {
    const Module module = parse_body(
        ".local .align 16 .b8 __local_depot0[96]; .shared .align 8 .u64 bar;\n"
        "mov.u64 %rd1, __local_depot0; { .shared .b32 bar[2]; mov.u32 %r1, bar; } mov.u32 %r2, bar;");
    const Function& k = kernel(module);
    REQUIRE(k.variables.size() == 5);
    CHECK(k.variables[2].space == Space::local);
    CHECK(k.variables[2].alignment == 16);
    CHECK(k.variables[3].bytes == 8);
    CHECK(k.instructions[0].operands[1].index == 2);
    CHECK(k.instructions[1].operands[1].index == 4);
    CHECK(k.instructions[2].operands[1].index == 3);
}

TEST_CASE("names belong to their scope, inner ones hide outer ones") {
    const std::string wait =
        "{ .reg .pred P; .reg .b32 %r1;\nWAIT: test P, %r1;\n@P bra DONE;\nbra.uni WAIT;\nDONE: }\n";
    const Module module = parse_body(wait + "op %r1;\n" + wait);
    const Function& k = kernel(module);
    const std::size_t before = 4 + 10 + 10 + 10;
    CHECK(k.registers.size() == before + 4);
    REQUIRE(k.instructions.size() == 7);
    CHECK(k.instructions[0].operands[0].index == before);
    CHECK(k.instructions[0].operands[1].index == before + 1);
    CHECK(k.instructions[1].operands[0].index == 3);
    CHECK(k.instructions[1].operands[0].kind == Kind::label);
    CHECK(k.instructions[1].operands[0].name == "DONE");
    CHECK(k.instructions[2].operands[0].index == 0);
    CHECK(k.instructions[3].operands[0].index == 4 + 1);
    CHECK(k.instructions[4].operands[0].index == before + 2);
    CHECK(k.instructions[5].operands[0].index == 7);
    CHECK(k.instructions[6].operands[0].index == 4);
}

TEST_CASE("labels are found forward, outward, and innermost first") {
    const Module module = parse_body("L: bra M;\n{ bra L; bra OUT;\n L: ret; { bra L; bra M; } }\nM: N: ret;\nOUT:");
    const std::vector<Instruction>& i = kernel(module).instructions;
    REQUIRE(i.size() == 7);
    CHECK(i[0].operands[0].index == 6);  // M, forward
    CHECK(i[1].operands[0].index == 3);  // the inner L, although the outer one is known already
    CHECK(i[2].operands[0].index == 7);  // OUT, at the end of the body
    CHECK(i[4].operands[0].index == 3);
    CHECK(i[5].operands[0].index == 6);
}

TEST_CASE("an inner label hides a parameter of the same name") {
    CHECK(first(parse_body("{ p0: bra p0; }")).operands[0].kind == Kind::label);
}

TEST_CASE(".loc gives instructions their source lines, with call sites") {
    const Module module = parse_body(
        "op;\n.loc 1 9 30\nop;\n.loc\t1 8 73, function_name $L__info_string0, inlined_at 1 9 30\n"
        ".loc 2 5 1, function_name $L__info_string1+16, inlined_at 1 8 73\nop; op;\n.loc 1 9 30\nop;\n"
        ".loc 2 6 1, function_name $L__info_string1, inlined_at 3 4 5\nop;");
    const auto line_of = [&](std::size_t i) { return kernel(module).instructions.at(i).source_line; };
    CHECK(line_of(0) == -1);
    const std::vector<SourceLine>& lines = module.source_lines;
    const SourceLine& inner = lines.at(line_of(2));
    CHECK(inner.file == 2);
    CHECK(inner.line == 5);
    CHECK(inner.column == 1);
    const SourceLine& middle = lines.at(inner.inlined_at);
    CHECK(middle.line == 8);
    const SourceLine& outer = lines.at(middle.inlined_at);
    CHECK(outer.line == 9);
    CHECK(outer.inlined_at == -1);
    CHECK(line_of(3) == line_of(2));
    CHECK(line_of(4) == line_of(1));
    CHECK(middle.inlined_at == line_of(1));
    const SourceLine& fresh = lines.at(lines.at(line_of(5)).inlined_at);
    CHECK(fresh.file == 3);
    CHECK(fresh.inlined_at == -1);
}

TEST_CASE("inlined recursion does not make call sites endless") {
    std::string body;
    for (int i = 0; i < 50; ++i) {
        body +=
            ".loc 1 5 3, function_name f, inlined_at 1 6 4\n"
            ".loc 1 6 4, function_name f, inlined_at 1 5 3\nop;\n";
    }
    const Module module = parse_body(body);
    for (const SourceLine& line : module.source_lines) {
        int depth = 0;
        for (std::int32_t at = line.inlined_at; at >= 0; at = module.source_lines[at].inlined_at) ++depth;
        CHECK(depth <= 2);
    }
}

TEST_CASE("a .loc counts within its function only") {
    const Module module = parse_module(
        ".entry a() { .loc 1 2 3\n ret; }\n.entry k() { ret; .loc 1 7 7, function_name f, inlined_at 1 2 3\n ret; }");
    CHECK(first(module).source_line == -1);
    const SourceLine& line = module.source_lines.at(kernel(module).instructions.at(1).source_line);
    CHECK(line.inlined_at != module.functions[0].instructions[0].source_line);
}

TEST_CASE("what a compiler adds around the code") {
    const Module module = parse_module(
        ".pragma \"enable_smem_spilling\";\n.entry k()\n.pragma \"nounroll\";\n"
        "{ L: .pragma \"nounroll\", \"used_bytes_mask 3\"; ret; }\n"
        "\t.file\t1 \"dir/a.cu\"\n.file 2 \"b.h\", 1700000000, 123\n"
        ".section\t.debug_str\n{\n$L__info_string0:\n.b8 95,90\n.b8 0\n.b32 .debug_abbrev+12\n}\n");
    CHECK(module.files.at(1) == "dir/a.cu");
    CHECK(module.files.at(2) == "b.h");
    CHECK(kernel(module).instructions.size() == 1);
}

TEST_CASE("the text of an instruction") {
    const Module module =
        parse_body("@%p1 // taken\n\tst.global.v2.f32 \t[%rd1+4],\n /* both; */ {%f1,%f2} ;\n\nbar.sync 0;");
    CHECK(instruction_text(module, kernel(module).instructions[0]) == "@%p1 st.global.v2.f32 [%rd1+4], {%f1,%f2}");
    CHECK(instruction_text(module, kernel(module).instructions[1]) == "bar.sync 0");
}

}  // namespace
}  // namespace block_attention::simulator::ptx
