#include <doctest/doctest.h>

#include <numeric>

#include "verify/simulator/test_kernel.h"

namespace block_attention::simulator {
namespace {

/// The only finding of a kernel whose body is at line 9 of the PTX and at line 100 of test.cu.
Finding only_finding(TestKernel& kernel, std::string_view rule) {
    const auto findings = kernel.findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == rule);
    CHECK(findings[0].kernel == "k");
    CHECK(findings[0].file == "test.cu");
    CHECK(findings[0].line == 100);
    return findings[0];
}

void check_contains(const std::string& text, std::string_view part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
}

const std::vector<std::uint32_t> kNumbers = [] {
    std::vector<std::uint32_t> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}();

constexpr std::string_view kLoadOwn =
    "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a0, %d0; ld.global.u32 %b0, [%d1]; add.s32 %b1, %b0, 1;";

TEST_CASE("a load behind a buffer's end names buffer, distance, CTA and thread") {
    TestKernel kernel(kLoadOwn, 1);
    kernel.input(kNumbers);
    kernel.run({3, 1, 1}, {96, 1, 1});
    const Finding finding = only_finding(kernel, "out-of-bounds");
    check_contains(finding.message, "load of 4 bytes");
    check_contains(finding.message, "'buffer 0'");
    CHECK(finding.instruction == "ld.global.u32 %b0, [%d1]");
    CHECK(finding.cta == Dim3{0, 0, 0});
    CHECK(finding.thread == Dim3{64, 0, 0});
    CHECK(finding.occurrences == 3 * 32);
}

TEST_CASE("a store in front of a buffer is dropped, and the neighbour keeps its content") {
    TestKernel kernel("mov.u32 %b0, 7; st.global.u32 [%a1+-4], %b0;", 2);
    kernel.input(kNumbers).input(kNumbers);
    kernel.run({1, 1, 1}, {1, 1, 1});
    check_contains(only_finding(kernel, "out-of-bounds").message, "store of 4 bytes");
    CHECK(kernel.read<std::uint32_t>(0, 64) == kNumbers);
    CHECK(kernel.read<std::uint32_t>(1, 64) == kNumbers);
}

TEST_CASE("a null pointer is called one") {
    TestKernel kernel("mov.u64 %d0, 0; ld.global.u32 %b0, [%d0+16];", 0);
    kernel.run({1, 1, 1}, {1, 1, 1});
    check_contains(only_finding(kernel, "out-of-bounds").message, "null");
}

TEST_CASE("misaligned access") {
    TestKernel kernel("ld.global.u32 %b0, [%a0+2];", 1);
    kernel.input(kNumbers);
    kernel.run({1, 1, 1}, {1, 1, 1});
    check_contains(only_finding(kernel, "misaligned").message, "not aligned to 4 bytes");
}

TEST_CASE("reads of what was never written: global memory") {
    TestKernel kernel(kLoadOwn, 1);
    kernel.output(256);
    kernel.run({1, 1, 1}, {32, 1, 1});
    const Finding finding = only_finding(kernel, "uninitialized-read");
    check_contains(finding.message, "'buffer 0'");
    CHECK(finding.occurrences == 32);
}

TEST_CASE("reads of what was never written: shared memory, beside what was") {
    TestKernel kernel(
        ".shared .align 4 .b8 s[128]; mov.u32 %b1, s; mad.lo.s32 %b1, %t, 4, %b1;"
        "setp.lt.u32 %p0, %t, 16; @%p0 st.shared.u32 [%b1], %t; ld.shared.u32 %b0, [%b1]; add.s32 %b2, %b0, 1;",
        0);
    kernel.run({1, 1, 1}, {32, 1, 1});
    const Finding finding = only_finding(kernel, "uninitialized-read");
    check_contains(finding.message, "shared variable 's'");
    CHECK(finding.thread == Dim3{16, 0, 0});
    CHECK(finding.occurrences == 16);
}

TEST_CASE("reads of what was never written: local memory and registers") {
    SUBCASE("local") {
        TestKernel kernel(".local .align 4 .b8 l[16]; mov.u64 %d0, l; ld.local.u32 %b0, [%d0+8]; add.s32 %b1, %b0, 1;",
                          0);
        kernel.run({1, 1, 1}, {4, 1, 1});
        CHECK(only_finding(kernel, "uninitialized-read").occurrences == 4);
    }
    SUBCASE("a register that one branch writes") {
        TestKernel kernel("setp.eq.u32 %p0, %t, 5; @!%p0 mov.u32 %b0, 1; add.s32 %b1, %b0, 1;", 0);
        kernel.run({1, 1, 1}, {8, 1, 1});
        const Finding finding = only_finding(kernel, "uninitialized-read");
        check_contains(finding.message, "register %b0");
        CHECK(finding.thread == Dim3{5, 0, 0});
        CHECK(finding.occurrences == 1);
    }
    SUBCASE("a predicate") {
        TestKernel kernel("@%p3 mov.u32 %b0, 1;", 0);
        kernel.run({1, 1, 1}, {1, 1, 1});
        check_contains(only_finding(kernel, "uninitialized-read").message, "%p3");
    }
}

TEST_CASE("a sound kernel has no findings") {
    TestKernel kernel(
        "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a0, %d0; add.s64 %d2, %a1, %d0;"
        "ld.global.u32 %b0, [%d1]; st.global.u32 [%d2], %b0; ld.global.u32 %b1, [%d2];",
        2);
    kernel.input(kNumbers).output(256);
    CHECK(kernel.run({1, 1, 1}, {64, 1, 1}));
    CHECK(kernel.findings().empty());
    CHECK(kernel.read<std::uint32_t>(1, 64) == kNumbers);
}

TEST_CASE("a trap and an endless loop end the launch") {
    SUBCASE("trap") {
        TestKernel kernel("setp.eq.u32 %p0, %t, 3; @%p0 trap;", 0);
        CHECK_FALSE(kernel.run({1, 1, 1}, {32, 1, 1}));
        CHECK(only_finding(kernel, "trap").thread == Dim3{3, 0, 0});
    }
    SUBCASE("loop") {
        TestKernel kernel("L: bra L;", 0, {.step_limit = 10000});
        CHECK_FALSE(kernel.run({1, 1, 1}, {32, 1, 1}));
        check_contains(only_finding(kernel, "step-limit").message, "step limit");
    }
}

TEST_CASE("findings don't depend on the number of host threads") {
    const auto report = [](unsigned threads) {
        TestKernel kernel("mov.u32 %b1, %ctaid.x; setp.gt.u32 %p0, %b1, 3; @%p0 ld.global.u32 %b0, [%a0+1024];", 1,
                          {.host_threads = threads});
        kernel.input(kNumbers);
        kernel.run({50, 1, 1}, {64, 1, 1});
        return to_string(only_finding(kernel, "out-of-bounds"));
    };
    const std::string one = report(1);
    check_contains(one, "CTA 4,0,0, thread 0,0,0; 2944 occurrences");
    CHECK(report(2) == one);
    CHECK(report(7) == one);
}

TEST_CASE("launches beyond the limits, and parameters that don't fit, are refused") {
    const auto refusal = [](TestKernel& kernel, Dim3 grid, Dim3 block, std::uint32_t shared = 0) {
        try {
            kernel.run(grid, block, shared);
        } catch (const SimulatorError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    TestKernel none("", 0);
    check_contains(refusal(none, {1, 1, 1}, {1025, 1, 1}), "1024");
    check_contains(refusal(none, {1, 1, 1}, {0, 1, 1}), "0");
    check_contains(refusal(none, {1, 65536, 1}, {1, 1, 1}), "65535");
    check_contains(refusal(none, {1, 1, 1}, {1, 1, 1}, 232449), "232448");
    CHECK(refusal(none, {1, 1, 1}, {1, 1, 1}, 232448) == "accepted");
    TestKernel missing("", 2);
    missing.input(kNumbers);
    check_contains(refusal(missing, {1, 1, 1}, {1, 1, 1}), "2");
}

}  // namespace
}  // namespace block_attention::simulator
