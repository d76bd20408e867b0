#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator::ptx {
namespace {

const std::string kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// The message of the PtxError that the text gives, or nothing.
std::string error_of(const std::string& text) {
    try {
        parse(text, "t.ptx");
    } catch (const PtxError& error) {
        return error.what();
    }
    return "";
}

std::string module_error(const std::string& declarations) { return error_of(kHeader + declarations); }

/// The body starts at line 5.
std::string body_error(const std::string& body) {
    return module_error(".entry k(.param .u64 p0) { .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n" + body +
                        "\n}\n");
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

#define CHECK_ERROR(error, place, part)                \
    do {                                               \
        const std::string message = error;             \
        CAPTURE(message);                              \
        CHECK(contains(message, "t.ptx:" place ": ")); \
        CHECK(contains(message, part));                \
    } while (false)

TEST_CASE("text that is not PTX") {
    CHECK_ERROR(error_of(""), "1:1", "expected '.version', with which PTX begins, but found the end of the text");
    CHECK_ERROR(error_of("int main"), "1:1", "'.version'");
    CHECK_ERROR(error_of(".version 9\n"), "1:10", "'9' is not a version");
    CHECK_ERROR(error_of(".version 9.0 .entry k() { ret; }"), "1:14", "'.target'");
    CHECK_ERROR(error_of(".version 9.0 .target sm_90a, map_f64_to_f32"), "1:30", "map_f64_to_f32");
    CHECK_ERROR(error_of(".version 9.0 .target sm_90a .address_size 32"), "1:43", "32 bits");
    CHECK_ERROR(module_error("ret;"), "4:1", "expected a directive");
}

TEST_CASE("directives and types that are not supported are named") {
    CHECK_ERROR(module_error(".alias a, b;"), "4:1", "'.alias' is not supported");
    CHECK_ERROR(module_error(".global .texref t;"), "4:9", "'.texref' is not supported");
    CHECK_ERROR(module_error(".global .v4 .f32 t;"), "4:9", "'.v4' is not supported");
    CHECK_ERROR(module_error(".global .attribute(.managed) .f32 t;"), "4:9", "'.attribute' is not supported");
    CHECK_ERROR(module_error(".param .b32 x;"), "4:1", "'.param' is not supported");
    CHECK_ERROR(module_error(".section .rodata { }"), "4:10", "'.rodata' is not supported");
    CHECK_ERROR(module_error(".entry k() .blocksareclusters { ret; }"), "4:12", "'.blocksareclusters'");
    CHECK_ERROR(module_error(".func f(.reg .b32 x) { ret; }"), "4:9", "'.reg' is not supported");
    CHECK_ERROR(body_error("ts: .branchtargets A, B;"), "5:5", "'.branchtargets' is not supported");
    CHECK_ERROR(body_error("p: .callprototype _ ();"), "5:4", "'.callprototype' is not supported");
    CHECK_ERROR(body_error("c: .calltargets f;"), "5:4", "'.calltargets' is not supported");
    CHECK_ERROR(body_error(".reg .v2 .b32 x;"), "5:6", "'.v2' is not supported");
}

TEST_CASE("names that nothing declares") {
    CHECK_ERROR(body_error("mov.b32 %r10, 1;"), "5:9", "register '%r10' is not declared");
    CHECK_ERROR(body_error("mov.b32 %r01, 1;"), "5:9", "register '%r01' is not declared");
    CHECK_ERROR(body_error("mov.b32 %r1, %tod.x;"), "5:14", "'%tod'");
    CHECK_ERROR(body_error("mov.b32 %r1, %tid.q;"), "5:18", "'.q'");
    CHECK_ERROR(body_error("mov.b32 x, 1;"), "5:9", "'x' is not declared");
    CHECK_ERROR(body_error("ld.b32 %r1, [x];"), "5:14", "'x' is not declared");
    CHECK_ERROR(body_error("ret;\nbra NOWHERE;"), "6:5", "'NOWHERE' is not declared");
    CHECK_ERROR(body_error("bra INNER; { INNER: ret; }"), "5:5", "'INNER' is not declared");
    CHECK_ERROR(body_error("call later, (); "), "5:6", "'later' is not declared");
    CHECK_ERROR(body_error("@q ret;"), "5:2", "'q' is not declared");
    CHECK_ERROR(body_error("{ .reg .b32 x; } mov.b32 x, 1;"), "5:26", "'x' is not declared");
    CHECK_ERROR(body_error("mov.b32 x, 1; .reg .b32 x;"), "5:9", "'x' is not declared");
}

TEST_CASE("names that are declared twice in a scope") {
    CHECK_ERROR(body_error(".reg .b32 x;\n.reg .b64 x;"), "6:11", "'x' is already declared in this scope, at line 5");
    CHECK_ERROR(body_error(".reg .b32 %r3;"), "5:11", "'%r3' is already declared in this scope, at line 4");
    CHECK_ERROR(body_error(".reg .b32 %x3;\n.reg .b32 %x<4>;"), "6:11", "'%x3' is already declared");
    CHECK_ERROR(body_error(".reg .b32 %r<2>;"), "5:11", "'%r<2>' is already declared");
    CHECK_ERROR(body_error(".reg .b32 %q<20>;\n.reg .b32 %q1<3>;"), "6:11", "'%q1<3>' is already declared");
    CHECK_ERROR(body_error("L: ret;\nL: ret;"), "6:1", "'L' is already declared in this scope, at line 5");
    CHECK_ERROR(body_error(".reg .b32 p0;"), "5:11", "'p0' is already declared");
    CHECK_ERROR(body_error(".shared .b32 x;\nx: ret;"), "6:1", "'x' is already declared");
    CHECK_ERROR(module_error(".global .b32 a;\n.global .b32 a;"), "5:14", "'a' is already declared, at line 4");
    CHECK_ERROR(module_error(".entry k() { ret; }\n.entry k() { ret; }"), "5:8", "'k' is already defined, at line 4");
    CHECK_ERROR(module_error(".global .b32 a;\n.entry a() { ret; }"), "5:8", "already declared as something else");
    CHECK_ERROR(module_error(".entry k(.param .b32 x, .param .b32 x) { ret; }"), "4:37", "'x' is already declared");
    CHECK(body_error(".reg .b32 %x<10>;\n.reg .b32 %x1<3>;").empty());
}

TEST_CASE("declarations of a function must agree") {
    const std::string declared = ".func (.param .b32 r) f(.param .b32 x);\n";
    CHECK(module_error(declared + declared + ".func (.param .b32 s) f(.param .b32 y) { ret; }").empty());
    CHECK_ERROR(module_error(declared + ".func (.param .b32 r) f() { ret; }"), "5:23", "the parameters of 'f' differ");
    CHECK_ERROR(module_error(declared + ".func f(.param .b32 x) { ret; }"), "5:7", "the results of 'f' differ");
    CHECK_ERROR(module_error(declared + ".func (.param .b32 r) f(.param .b64 x) { ret; }"), "5:23", "parameters");
    CHECK_ERROR(module_error(".extern .func f() { ret; }"), "4:15", "cannot have a body");
}

TEST_CASE("variables that cannot be") {
    CHECK_ERROR(module_error(".global .b8 a[];"), "4:13", "'a' has no size");
    CHECK_ERROR(module_error(".global .b8 a[0];"), "4:14", "size 0");
    CHECK_ERROR(module_error(".global .align 3 .b8 a;"), "4:16", "alignment 3 is not a power of two");
    CHECK_ERROR(module_error(".global .pred a;"), "4:9", ".pred");
    CHECK_ERROR(module_error(".global .b32 a[1099511627776];"), "4:14", "larger than");
    CHECK_ERROR(module_error(".global .b8 a[1099511627776] = {1};"), "4:32", "1099511627776 bytes is more than");
    CHECK_ERROR(module_error(".global .b8 a[2][2][2][2][2][2][2][2][2];"), "4:38", "more than 8 dimensions");
    CHECK_ERROR(module_error(".entry k(.param .b8 a[]) { ret; }"), "4:21", "'a' has no size");
}

TEST_CASE("initial values that cannot be") {
    CHECK_ERROR(module_error(".global .u64 a = generic(b);"), "4:18", "'generic'");
    CHECK_ERROR(module_error(".global .u64 a[2] = {1, f};"), "4:25", "'f': the simulator supports numbers only");
    CHECK_ERROR(module_error(".global .b8 a = 256;"), "4:17", "256 does not fit in .b8");
    CHECK_ERROR(module_error(".global .s8 a = -129;"), "4:18", "-129 does not fit in .s8");
    CHECK_ERROR(module_error(".global .b8 a[2] = {1, 2, 3};"), "4:27", "dimension of 2");
    CHECK_ERROR(module_error(".global .b8 a[2][2] = {1, 2};"), "4:24", "expected '{'");
    CHECK_ERROR(module_error(".global .f32 a = 1;"), "4:18", "an integer");
    CHECK_ERROR(module_error(".global .u32 a = 1.5;"), "4:18", "a 64-bit float");
    CHECK_ERROR(module_error(".shared .b8 a = 1;"), "4:15", "'a' cannot have an initial value");
    CHECK_ERROR(module_error(".extern .global .b8 a = 1;"), "4:23", "'a' cannot have an initial value");
}

TEST_CASE("statements that are not PTX") {
    CHECK_ERROR(body_error("ret"), "6:1", "expected ';' after an instruction, but found '}'");
    CHECK_ERROR(body_error("mov.b32 %r1\nret;"), "6:1", "expected ';' or ','");
    CHECK_ERROR(body_error("mov.b32 %r1, 2+3;"), "5:15", "expressions are not supported");
    CHECK_ERROR(body_error("mov.b32 %r1, ;"), "5:14", "expected an operand, but found ';'");
    CHECK_ERROR(body_error("mov.b32 %r1, ~2;"), "5:14", "expected an operand");
    CHECK_ERROR(body_error("mov.b32 %r1, 0f123;"), "5:14", "'0f123' is not a literal");
    CHECK_ERROR(body_error("mov.b64 %rd1, -18446744073709551615;"), "5:16", "does not fit in 64 bits");
    CHECK_ERROR(body_error("mov.b64 %rd1, {{%r1}, %r2};"), "5:16", "expected an operand, but found '{'");
    CHECK_ERROR(body_error("ld.b32 %r1, [%rd1-4];"), "5:18", "[base+offset]");
    CHECK_ERROR(body_error("ld.b32 %r1, [0f00000000];"), "5:14", "floating-point");
    CHECK_ERROR(body_error("ld.b32 %r1, [%tid.x];"), "5:14", "the base of an address");
    CHECK_ERROR(body_error("mov.pred %p1, !3;"), "5:16", "expected a register");
    CHECK_ERROR(body_error("@%r1 ret;"), "5:2", "type .pred");
    CHECK_ERROR(body_error("@%p1 { ret; }"), "5:6", "an instruction after its guard");
    CHECK_ERROR(body_error(";"), "5:1", "expected an instruction");
    CHECK_ERROR(body_error(".reg .b32 %x<1048577>;"), "5:11", "more than 1048576 registers");
    CHECK_ERROR(body_error(".loc 1 2 3, file 4"), "5:13", "'file' is not an attribute of .loc");
    CHECK_ERROR(module_error(".entry k() .maxntid 1,2,3,4 { ret; }"), "4:27", ".maxntid takes one to three");
    CHECK_ERROR(module_error(".entry k() .reqntid 0 { ret; }"), "4:21", ".reqntid takes one to three");
}

TEST_CASE("what is opened must be closed") {
    CHECK_ERROR(module_error(".entry k() {\n{ ret; }\n"), "4:12", "this '{' in 'k' is never closed");
    CHECK_ERROR(module_error(".entry k() {\n{ ret;\n"), "5:1", "this '{' in 'k' is never closed");
    CHECK_ERROR(module_error(".section .debug_str {\n"), "4:21", "this '{' is never closed");
    CHECK_ERROR(module_error(".entry k() { /* ret; }"), "4:14", "comment is never closed");
    CHECK_ERROR(module_error(".pragma \"x;\n"), "4:9", "string is not closed");
    CHECK_ERROR(body_error("} }"), "5:3", "expected a directive, but found '}'");
}

TEST_CASE("a long name is cut in a message") {
    const std::string name(5000, 'x');
    const std::string message = body_error("bra " + name + ";");
    CHECK(message.size() < 500);
    CHECK(contains(message, "xxx..."));
}

TEST_CASE("a text cut anywhere, or with any byte lost, parses or gives an error") {
    const std::string text =
        kHeader +
        ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a\n)\n;\n"
        ".global .align 4 .b8 t[2][2] = {{1, 0x2}, {-3}};\n.const .f32 c = 0f3F800000;\n"
        ".visible .entry k(.param .u64 .ptr .align 1 p, .param .align 8 .b8 q[24])\n.maxntid 128, 1, 1\n"
        "{\n.reg .pred %p<3>; .reg .b32 %r<5>, x;\n.reg .b64 %rd<4>;\n.shared .b64 bar;\n"
        ".loc 1 2 3\n.loc 1 4 5, function_name $L__info_string0, inlined_at 1 2 3\n"
        "ld.param.v2.u32 {%r1, _}, [q+8]; /* wait */\n"
        "{ .reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [bar+0], 0; @!P bra W; }\n"
        "shfl.sync.bfly.b32 %r2|%p1, %r1, 0x1f, 31, -1; // all\n"
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, 0}], [%r2+-4];\n"
        "mov.u32 %r3, %tid.x;\nmov.u64 %rd2, t+4;\nmul.f32 x, x, -1.5e3;\n"
        "{ .param .b64 a; .param .b32 b; call.uni (b), vprintf, (a); }\n"
        ".pragma \"nounroll\";\n@%p1 bra END;\nEND: ret;\n}\n"
        ".file 1 \"a.cu\"\n.section .debug_str { L: .b8 1,2\n}\n";
    REQUIRE(error_of(text).empty());
    const auto survives = [](const std::string& damaged) {
        // Anything but a PtxError ends the test.
        const std::string message = error_of(damaged);
        return message.empty() || contains(message, "t.ptx:");
    };
    std::size_t refused = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        CAPTURE(i);
        const std::string cut = text.substr(0, i);
        CHECK(survives(cut));
        refused += error_of(cut).empty() ? 0 : 1;
        std::string lost = text;
        lost.erase(i, 1);
        CHECK(survives(lost));
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ 0x10);
        CHECK(survives(changed));
    }
    CHECK(refused > text.size() / 2);
}

}  // namespace
}  // namespace block_attention::simulator::ptx
