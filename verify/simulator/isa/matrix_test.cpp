// Matrix instructions of a warp, from PTX: where ldmatrix, stmatrix and movmatrix put each element, by matrices of
// distinct numbers, and what is refused or reported of all of them. Products are tested in mma_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "verify/simulator/ptx/parse.h"
#include "verify/simulator/test_kernel.h"

namespace block_attention::simulator {
namespace {

using Words = std::vector<std::uint32_t>;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Loads 128 words, 4 a thread, from the first buffer into shared memory at %b20, 16 bytes times the thread's number.
constexpr std::string_view kFillShared =
    ".shared .align 16 .b8 s[512]; mov.u32 %b20, s; mad.lo.s32 %b20, %t, 16, %b20;"
    "mul.wide.u32 %d0, %t, 16; add.s64 %d1, %a0, %d0; ld.global.v4.b32 {%b0, %b1, %b2, %b3}, [%d1];"
    "st.shared.v4.b32 [%b20], {%b0, %b1, %b2, %b3}; bar.warp.sync -1;";
/// Stores %b0 to %b3 of each thread as 4 neighbouring words of the second buffer.
constexpr std::string_view kStoreRegisters =
    "mul.wide.u32 %d0, %t, 16; add.s64 %d1, %a1, %d0; st.global.v4.b32 [%d1], {%b0, %b1, %b2, %b3};";

/// Four matrices of 8 x 8 distinct 16-bit numbers: row 8 i + r is row r of matrix i.
std::vector<std::uint16_t> distinct_elements() {
    std::vector<std::uint16_t> elements(256);
    for (std::size_t k = 0; k < elements.size(); ++k) elements[k] = static_cast<std::uint16_t>(0x1111 + 97 * k);
    return elements;
}

/// Element `number` of the register of matrix `matrix`, in the 4 words of each thread.
std::uint32_t element_of(const Words& registers, unsigned lane, unsigned matrix, unsigned number) {
    return registers[4 * lane + matrix] >> (16 * number) & 0xFFFF;
}

/// The same, out of the matrices in memory, as PTX ISA 9.7.14.5.15 tells: thread l holds two neighbours of row l / 4.
std::uint32_t expected_element(unsigned lane, unsigned matrix, unsigned number, bool transposed) {
    const unsigned row = lane / 4;
    const unsigned col = lane % 4 * 2 + number;
    return distinct_elements()[64 * matrix + (transposed ? 8 * col + row : 8 * row + col)];
}

TEST_CASE("ldmatrix: modifiers in any order, both state spaces, every number of matrices") {
    struct Form {
        std::string instruction;
        unsigned matrices;
        bool transposed;
    };
    const std::string set = "mov.b32 %b0, 0; mov.b32 %b1, 0; mov.b32 %b2, 0; mov.b32 %b3, 0;";
    const std::vector<Form> forms{
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b0}, [%b20];", 1, false},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b0, %b1}, [%b20];", 2, false},
        {"ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%b0, %b1, %b2, %b3}, [%b20];", 4, false},
        {"ldmatrix.aligned.sync.x4.trans.m8n8.shared.b16 {%b0, %b1, %b2, %b3}, [%b20];", 4, true},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16.trans {%b0, %b1}, [%b20];", 2, true},
        {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%b0}, [%b20];", 1, true},
        {"sub.s32 %b20, %b20, 32; cvt.u64.u32 %d2, %b20; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b0}, [%d2+32];", 1,
         false},
        {"cvt.u64.u32 %d2, %b20; cvta.shared.u64 %d3, %d2;"
         "ldmatrix.sync.aligned.m8n8.x4.b16 {%b0, %b1, %b2, %b3}, [%d3];",
         4, false},
    };
    for (const auto& form : forms) {
        INFO(form.instruction);
        TestKernel kernel(fmt::format("{}{}{}{}", kFillShared, set, form.instruction, kStoreRegisters), 2);
        kernel.input(distinct_elements()).output(512);
        REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
        REQUIRE(kernel.findings().empty());
        const auto registers = kernel.read<std::uint32_t>(1, 128);
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned k = 0; k < 8; ++k) {
                const std::uint32_t expected =
                    k / 2 < form.matrices ? expected_element(lane, k / 2, k % 2, form.transposed) : 0;
                REQUIRE(element_of(registers, lane, k / 2, k % 2) == expected);
            }
        }
    }
}

TEST_CASE("ldmatrix: each row has an address of its own, and threads without a row need none") {
    // Row r of the matrix is at row 31 - 3 r; the threads from 8 on have an address of no memory.
    TestKernel kernel(
        fmt::format("{}mov.u32 %b21, s; mul.lo.s32 %b22, %t, 48; sub.s32 %b22, 496, %b22; add.s32 %b21, %b21, %b22;"
                    "setp.ge.u32 %p0, %t, 8; @%p0 mov.b32 %b21, 3;"
                    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%b0}}, [%b21];{}",
                    kFillShared, kStoreRegisters),
        2);
    kernel.input(distinct_elements()).output(512);
    REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
    CHECK(kernel.findings().empty());
    const auto registers = kernel.read<std::uint32_t>(1, 128);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned number = 0; number < 2; ++number) {
            const unsigned row = 31 - 3 * (lane / 4);
            REQUIRE(element_of(registers, lane, 0, number) == distinct_elements()[8 * row + lane % 4 * 2 + number]);
        }
    }
}

TEST_CASE("stmatrix stores what ldmatrix loads") {
    for (const std::string trans : {"", ".trans"}) {
        // Both ways transposed, or neither.
        TestKernel kernel(fmt::format("{}ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%b4, %b5, %b6, %b7}}, [%b20];"
                                      ".shared .align 16 .b8 u[512]; mov.u32 %b21, u; mad.lo.s32 %b21, %t, 16, %b21;"
                                      "stmatrix.sync.aligned.m8n8.x4{}.shared.b16 [%b21], {{%b4, %b5, %b6, %b7}};"
                                      "bar.warp.sync -1; ld.shared.v4.b32 {{%b0, %b1, %b2, %b3}}, [%b21];{}",
                                      kFillShared, trans, trans, kStoreRegisters),
                          2);
        kernel.input(distinct_elements()).output(512);
        REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
        CHECK(kernel.findings().empty());
        CHECK(kernel.read<std::uint16_t>(1, 256) == distinct_elements());
    }
}

TEST_CASE("stmatrix writes its rows and nothing else") {
    TestKernel kernel(fmt::format("{}mov.b32 %b4, 0xBEEFBEEF; stmatrix.sync.aligned.x1.m8n8.shared.b16 [%b20], {{%b4}};"
                                  "bar.warp.sync -1; ld.shared.v4.b32 {{%b0, %b1, %b2, %b3}}, [%b20];{}",
                                  kFillShared, kStoreRegisters),
                      2);
    kernel.input(distinct_elements()).output(512);
    REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
    CHECK(kernel.findings().empty());
    auto expected = distinct_elements();
    std::fill_n(expected.begin(), 64, std::uint16_t{0xBEEF});
    CHECK(kernel.read<std::uint16_t>(1, 256) == expected);
}

TEST_CASE("movmatrix transposes") {
    TestKernel kernel(fmt::format("{}ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%b0, %b1, %b2, %b3}}, [%b20];"
                                  "movmatrix.sync.aligned.m8n8.trans.b16 %b0, %b1;{}",
                                  kFillShared, kStoreRegisters),
                      2);
    kernel.input(distinct_elements()).output(512);
    REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
    CHECK(kernel.findings().empty());
    const auto registers = kernel.read<std::uint32_t>(1, 128);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned number = 0; number < 2; ++number) {
            REQUIRE(element_of(registers, lane, 0, number) == expected_element(lane, 1, number, true));
        }
    }
}

TEST_CASE("rows of ldmatrix and stmatrix are checked, each with the thread that gave the address") {
    struct Fault {
        std::string body;
        std::string rule;
        std::uint32_t thread;
        std::uint64_t occurrences;
        std::string part;
    };
    const std::string fill{kFillShared};
    const std::vector<Fault> faults{
        {fill + "setp.eq.u32 %p0, %t, 5; @%p0 add.s32 %b20, %b20, 8;"
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%b0, %b1, %b2, %b3}, [%b20];",
         "misaligned", 5, 1, "a load of 16 bytes"},
        {fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%b0, %b1, %b2, %b3}, [%b20+32];", "out-of-bounds", 30, 2,
         "shared variable 's'"},
        {fill + "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%b20+16], {%b0, %b1, %b2, %b3};", "out-of-bounds", 31, 1,
         "a store of 16 bytes"},
        {".shared .align 16 .b8 s[512]; mov.u32 %b20, s; mad.lo.s32 %b20, %t, 16, %b20; mov.b32 %b1, 1;"
         "setp.ne.u32 %p0, %t, 11; @%p0 st.shared.v4.b32 [%b20], {%b1, %b1, %b1, %b1}; bar.warp.sync -1;"
         "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b0, %b1}, [%b20];",
         "uninitialized-read", 11, 1, "never written"},
        {"ldmatrix.sync.aligned.m8n8.x1.b16 {%b0}, [%a0];", "out-of-bounds", 0, 8, "not in shared memory"},
        {fill + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%b20], {%b9};", "uninitialized-read", 0, 32, "%b9"},
        {fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b0}, [%b9];", "uninitialized-read", 0, 8, "%b9"},
    };
    for (const auto& fault : faults) {
        INFO(fault.body);
        TestKernel kernel(fault.body, 1);
        kernel.input(distinct_elements());
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(!findings.empty());
        INFO(findings[0].message);
        CHECK(findings[0].rule == fault.rule);
        CHECK(findings[0].thread == Dim3{fault.thread, 0, 0});
        CHECK(findings[0].occurrences == fault.occurrences);
        CHECK(contains(findings[0].message, fault.part));
    }
}

TEST_CASE("a row that cannot be loaded is poison, the others are as they should be") {
    TestKernel kernel(
        fmt::format("{}setp.eq.u32 %p0, %t, 5; @%p0 add.s32 %b20, %b20, 8; mov.b32 %b1, 0; mov.b32 %b2, 0;"
                    "mov.b32 %b3, 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%b0}}, [%b20];{}",
                    kFillShared, kStoreRegisters),
        2);
    kernel.input(distinct_elements()).output(512);
    kernel.run({1, 1, 1}, {32, 1, 1});
    CHECK(kernel.findings().size() == 1);
    const auto registers = kernel.read<std::uint32_t>(1, 128);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned number = 0; number < 2; ++number) {
            const std::uint32_t expected = lane / 4 == 5 ? 0x7FFD : expected_element(lane, 0, number, false);
            REQUIRE(element_of(registers, lane, 0, number) == expected);
        }
    }
}

TEST_CASE(".aligned: diverged lanes wait for each other, a warp that lacks lanes is a finding") {
    const std::string multiply =
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%b0, %b1, %b2, %b3}, {%b4, %b5}, {%b6}, {%b0, %b1, %b2, "
        "%b3};";
    std::string fill;
    for (unsigned i = 0; i < 7; ++i) fill += fmt::format("mov.b32 %b{}, 0x3F803F80;", i);
    SUBCASE("a branch before it") {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            TestKernel kernel(fmt::format("{}setp.lt.u32 %p0, %t, 9; @%p0 bra L; mov.b32 %b7, 1; mov.b32 %b8, 1; "
                                          "mov.b32 %b9, 1; L: {}{}",
                                          fill, multiply,
                                          "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a0, %d0; st.global.b32 [%d1], %b0;"),
                              1, {.seed = seed});
            kernel.output(128);
            REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
            CHECK(kernel.findings().empty());
            // 8 products of 1 and what 0x3F803F80 is in C.
            const float c = std::bit_cast<float>(0x3F803F80);
            CHECK(kernel.read<float>(0, 32) == std::vector<float>(32, c + 8));
        }
    }
    SUBCASE("half a warp") {
        TestKernel kernel(fmt::format("{}{}", fill, multiply), 0);
        kernel.run({1, 1, 1}, {16, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].rule == "membermask");
        CHECK(contains(findings[0].message, "only lanes 0-15 of warp 0 execute it"));
    }
    SUBCASE("some lanes pass it by") {
        TestKernel kernel(fmt::format("{}setp.lt.u32 %p0, %t, 9; @%p0 {}", fill, multiply), 0);
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].rule == "membermask");
        CHECK(contains(findings[0].message, "only lanes 0-8 of warp 0 execute it"));
    }
    SUBCASE("some lanes wait elsewhere") {
        TestKernel kernel(fmt::format("{}setp.lt.u32 %p0, %t, 9; @%p0 {} bar.sync 0;", fill, multiply), 0);
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].rule == "deadlock");
    }
    SUBCASE("ldmatrix with no thread that has a row") {
        TestKernel kernel(
            fmt::format("{}setp.lt.u32 %p0, %t, 16; @%p0 ret; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%b0}}, [%b20];"
                        "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a1, %d0; st.global.b32 [%d1], %b0;",
                        kFillShared),
            2);
        kernel.input(distinct_elements()).output(128);
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].rule == "membermask");
        CHECK(kernel.read<std::uint32_t>(1, 32)[31] == 0x7FFD7FFD);
    }
}

TEST_CASE("what is not simulated, and what does not exist, is refused by name") {
    const auto refusal = [](const std::string& instruction) {
        try {
            TestKernel kernel(instruction, 0);
            kernel.run({1, 1, 1}, {32, 1, 1});
        } catch (const ptx::PtxError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    const std::string four = "{%b0, %b1, %b2, %b3}";
    const std::string mma = fmt::format(" {}, {}, {{%b4, %b5}}, {};", four, four, four);
    const std::vector<std::pair<std::string, std::string>> cases{
        {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%b0, %b1}, [%b4];", "shape .m16n16"},
        {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%b0}, [%b4];", "shape .m8n16"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%b0}, [%b4];", ".m8n8 and .b16"},
        {"ldmatrix.sync.aligned.m8n8.shared.b16 {%b0}, [%b4];", "number of matrices"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%b0}, [%b4];", ".shared::cluster"},
        {"ldmatrix.sync.m8n8.x1.shared.b16 {%b0}, [%b4];", ".sync.aligned"},
        {"ldmatrix.aligned.m8n8.x1.shared.b16 {%b0}, [%b4];", ".sync.aligned"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %b0, [%b4];", "a vector of 1 32-bit registers"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b0}, [%b4];", "a vector of 2 32-bit registers"},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%b4];", "a 64-bit register"},
        {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%b4], {%b0};", "shape .m16n8"},
        {"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%b4], {%b0, %b1, %b2, %b3};", "a vector of 2 32-bit registers"},
        {"movmatrix.sync.aligned.m8n8.b16 %b0, %b1;", ".trans"},
        {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" + mma, "integer products (.s8)"},
        {"mma.sync.aligned.m16n8k64.row.col.satfinite.s32.u4.u4.s32" + mma, "integer products (.u4)"},
        {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc" + mma, "one-bit products"},
        {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32" + mma, "8-bit floating-point numbers (.e4m3)"},
        {"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m3.e2m1.f32" + mma, "6-bit floating-point"},
        {"mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0" + mma, "block-scaled"},
        {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + mma, "sparse products (.sp)"},
        {"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + mma, "sparse products"},
        {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};", "double-precision"},
        {"wmma.load.a.sync.aligned.m16n16k16.shared.row.f16 {%b0}, [%b4];", "wmma is not simulated"},
        {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32" + mma, "its shape is not simulated"},
        {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32" + mma, "its layouts are .row.col"},
        {"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32" + mma, "its layouts are .row.col"},
        {"mma.sync.m16n8k16.row.col.f32.f16.f16.f32" + mma, ".sync.aligned"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32" + mma, "A and B must have one type"},
        {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32" + mma, "C and D must have one type"},
        {"mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.bf16" + mma, "C and D are of type .f32 or .f16"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f32.f32.f32" + mma, "A and B are of type"},
        {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16" + mma, "does not exist with this shape"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32" + mma, "does not exist with this shape"},
        {"mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32" + mma, "does not exist with this shape"},
        {"mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32" + mma, "modifier .satfinite"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16" + mma, "the type is missing"},
        {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" + mma, "a vector of 2 32-bit registers"},
        {fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {}, {}, {{%b4, %b5}};", four, four),
         "3 operands"},
    };
    for (const auto& refused : cases) {
        const std::string& instruction = refused.first;
        const std::string message = refusal(instruction);
        INFO(instruction, " -> ", message);
        CHECK(contains(message, refused.second));
        CHECK(contains(message, "test.ptx:8:"));
    }
}

}  // namespace
}  // namespace block_attention::simulator
