#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "verify/simulator/isa/tcgen05_test_support.h"
#include "verify/simulator/layout/matrix_descriptor.h"

/// What kernels do wrong with tcgen05: a finding names it, or the result is not what it would be, or nothing goes on.
namespace block_attention::simulator {
namespace {

constexpr std::uint64_t kSeeds = 40;
constexpr std::uint32_t kThreads = 128;

/// The pieces of a kernel in which thread 0 multiplies A (128 x 16, 2 everywhere) by B (16 x 8, 3 everywhere), and
/// then 256 threads may load the product, of which only the first 128 do. Each piece can be changed.
struct Pieces {
    std::string operands = "fence.proxy.async.shared::cta; bar.sync 0;\n";
    std::string multiply = "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 0;\n";
    std::string commit{kCommit};
    std::string wait = "B0: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], 0; @!%p15 bra B0;\n";
    std::string fence = "tcgen05.fence::after_thread_sync;\n";
    std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1+7];\n";
    std::string wait_for_load = "tcgen05.wait::ld.sync.aligned;\n";
    std::string after = "";
    std::string free = free_columns(32);
    std::string a_value = "0x40004000";
    std::uint32_t a_rows = 128;  ///< that are written
    std::uint64_t descriptor_a = encode_tcgen05_descriptor({.start = 0x400, .leading = 2048, .stride = 128});
    std::uint64_t descriptor_b = encode_tcgen05_descriptor({.start = 0x1400, .leading = 128, .stride = 128});
    std::uint32_t instruction = 0x08020010;  ///< M 128, N 8, f16, f32

    [[nodiscard]] std::string text() const {
        return fmt::format(
            ".shared .align 1024 .b8 tile[8192];\n{}mov.u32 %b63, bar; mov.u32 %b10, tile; shl.b32 %b11, %t, 4;\n"
            "add.u32 %b10, %b10, %b11; mov.u32 %b11, {}; mov.u32 %b12, 0x42004200; setp.lt.u32 %p5, %t, {};\n"
            "@%p5 st.shared.v4.b32 [%b10], {{%b11, %b11, %b11, %b11}};\n"
            "@%p5 st.shared.v4.b32 [%b10+2048], {{%b11, %b11, %b11, %b11}};\n"
            "setp.lt.u32 %p6, %t, 16; @%p6 st.shared.v4.b32 [%b10+4096], {{%b12, %b12, %b12, %b12}};\n{}"
            "mov.u64 %d0, {}; mov.u64 %d1, {}; mov.u32 %b4, {}; @!%p0 bra ISSUED;\n{}{}ISSUED:\n{}{}{}{}"
            "mul.wide.u32 %d2, %t, 4; add.s64 %d3, %a0, %d2; st.global.u32 [%d3], %r0;\n{}{}",
            allocate(32), a_value, a_rows, operands, descriptor_a, descriptor_b, instruction, multiply, commit, wait,
            fence, load, wait_for_load, after, free);
    }
};

struct Outcome {
    bool completed = true;
    std::vector<float> values;
    std::vector<Finding> findings;

    [[nodiscard]] bool right() const {
        return completed && findings.empty() && std::ranges::all_of(values, [](float value) { return value == 96; });
    }
};

Outcome run(const std::string& text, std::uint64_t seed, std::uint32_t threads = kThreads) {
    TestKernel kernel(text, 1, blackwell(seed));
    kernel.output(threads * 4);
    Outcome outcome;
    outcome.completed = kernel.run({1, 1, 1}, {threads, 1, 1});
    outcome.values = kernel.read<float>(0, threads);
    outcome.findings = kernel.findings();
    return outcome;
}

/// Every schedule gives at least one finding of a rule, one of which says so.
void check_always(const Pieces& pieces, std::string_view rule, std::string_view part) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(pieces.text(), seed);
        CAPTURE(seed);
        std::string all;
        bool found = false;
        for (const Finding& finding : outcome.findings) {
            all += to_string(finding) + '\n';
            found |= finding.rule == rule && contains(finding.message, part);
        }
        INFO(all);
        CHECK(found);
    }
}

TEST_CASE("the kernel without a fault") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(Pieces{}.text(), seed);
        for (const Finding& finding : outcome.findings) FAIL(to_string(finding));
        CHECK(outcome.right());
    }
}

TEST_CASE("a commit without anything to wait for arrives at once") {
    Pieces pieces;
    pieces.multiply = "";
    pieces.load = "mov.u32 %r0, 0x42C00000;\n";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) CHECK(run(pieces.text(), seed).right());
}

TEST_CASE("no commit: nobody goes on") {
    Pieces pieces;
    pieces.commit = "";
    const Outcome outcome = run(pieces.text(), 1);
    CHECK_FALSE(outcome.completed);
    CHECK(outcome.findings.front().rule == "deadlock");
}

TEST_CASE("a commit by another thread than that of the product") {
    Pieces pieces;
    pieces.multiply =
        "@%p0 tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 0;\nISSUED: setp.eq.u32 %p7, %t, "
        "1; @!%p7 bra ALSO;\n";
    pieces.commit = std::string(kCommit) + "ALSO:\n";
    std::string text = pieces.text();
    text.erase(text.rfind("ISSUED:\n"), 8);
    unsigned noticed = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) noticed += run(text, seed).right() ? 0 : 1;
    CHECK(noticed == kSeeds);
}

TEST_CASE("no wait for the barrier") {
    Pieces pieces;
    pieces.wait = "";
    check_always(pieces, "tensor-memory", "Tensor Memory");
}

TEST_CASE("no tcgen05.fence::after_thread_sync behind the wait") {
    Pieces pieces;
    pieces.fence = "";
    check_always(pieces, "tensor-memory", "no tcgen05.fence::after_thread_sync");
}

TEST_CASE("no wait for a load") {
    Pieces pieces;
    pieces.wait_for_load = "";
    check_always(pieces, "uninitialized-read", "is asynchronous, and no wait has covered it yet");
}

TEST_CASE("a load that is moved before the wait still arrives") {
    Pieces pieces;
    pieces.load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%b1+7];\nmov.b32 %r0, %r1;\n";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(pieces.text(), seed);
        for (const Finding& finding : outcome.findings) FAIL(to_string(finding));
        CHECK(outcome.right());
    }
}

TEST_CASE("operands that are not there, and the reader learns why") {
    Pieces pieces;
    pieces.a_rows = 100;
    const Outcome outcome = run(pieces.text(), 3);
    CHECK(outcome.findings.size() == 1);
    const Finding& finding = outcome.findings.front();
    INFO(to_string(finding));
    CHECK(finding.rule == "uninitialized-read");
    CHECK(finding.occurrences == 28);
    CHECK(contains(finding.message, "whose operand A was not there"));
    CHECK(std::count(outcome.values.begin(), outcome.values.end(), 96.0F) == 100);
}

TEST_CASE("an accumulator that was never written") {
    Pieces pieces;
    pieces.multiply = "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 1;\n";
    check_always(pieces, "uninitialized-read", "the Tensor Memory that it was loaded from was never written");
}

TEST_CASE("lanes that M 64 leaves alone may be loaded, and what is computed from them is poison") {
    Pieces pieces;
    pieces.instruction = 0x04020010;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(pieces.text(), seed);
        for (const Finding& finding : outcome.findings) FAIL(to_string(finding));
        for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
            if (thread % 32 < 16) {
                CHECK(outcome.values[thread] == 96);
            } else {
                CHECK(std::isnan(outcome.values[thread]));
            }
        }
    }
}

TEST_CASE("an operand that is overwritten before the product has read it") {
    Pieces pieces;
    pieces.commit = "mov.u32 %b13, 0; st.shared.u32 [%b10+4208], %b13;\n" + std::string(kCommit);
    unsigned wrong = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) wrong += run(pieces.text(), seed).right() ? 0 : 1;
    CHECK(wrong > 0);
}

TEST_CASE("two products with different accumulators have no order") {
    // The second reads as its A what the first writes.
    Pieces pieces;
    pieces.multiply =
        "tcgen05.mma.cta_group::1.kind::f16 [%b0+8], %d0, %d1, %b4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], [%b0+8], %d1, %b4, 0;\n";
    check_always(pieces, "tensor-memory", "it reads Tensor Memory");
}

TEST_CASE("products with one accumulator keep their order, and are not alone in time") {
    Pieces pieces;
    pieces.multiply =
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 1;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 0;\n";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) CHECK(run(pieces.text(), seed).right());
    // Another shape is another accumulator: N 16.
    pieces.multiply =
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d0, 0x08040010, 0;\n";
    check_always(pieces, "tensor-memory", "it writes Tensor Memory");
}

TEST_CASE("a store that has not been waited for") {
    Pieces pieces;
    pieces.multiply = "";
    pieces.load =
        "mov.u32 %r1, 0x42C00000; tcgen05.st.sync.aligned.32x32b.x1.b32 [%b1+7], {%r1};\n"
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1+7];\n";
    check_always(pieces, "tensor-memory", "it reads Tensor Memory");
    pieces.load =
        "mov.u32 %r1, 0x42C00000; tcgen05.st.sync.aligned.32x32b.x1.b32 [%b1+7], {%r1};\n"
        "tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1+7];\n";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) CHECK(run(pieces.text(), seed).right());
}

/// A store of A into Tensor Memory by all warps, and a product by thread 0 that reads it.
Pieces with_a_in_tensor_memory(std::string_view between) {
    Pieces pieces;
    pieces.operands = fmt::format(
        "fence.proxy.async.shared::cta;\nmov.u32 %r1, 0x40004000; mov.u32 %r2, %r1; mov.u32 %r3, %r1; mov.u32 %r4, "
        "%r1;\n"
        "mov.u32 %r5, %r1; mov.u32 %r6, %r1; mov.u32 %r7, %r1; mov.u32 %r8, %r1;\n"
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%b1+16], {};\n{}",
        registers(8, 1), between);
    pieces.multiply = "tcgen05.mma.cta_group::1.kind::f16 [%b0], [%b0+16], %d1, %b4, 0;\n";
    return pieces;
}

TEST_CASE("A in Tensor Memory: each of wait, fence and fence is needed") {
    constexpr std::string_view kWait = "tcgen05.wait::st.sync.aligned;\n";
    constexpr std::string_view kBefore = "tcgen05.fence::before_thread_sync;\n";
    constexpr std::string_view kBarrier = "bar.sync 0;\n";
    constexpr std::string_view kAfter = "tcgen05.fence::after_thread_sync;\n";
    const auto pieces = [](auto... parts) {
        std::string text;
        (text.append(parts), ...);
        return with_a_in_tensor_memory(text);
    };
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(pieces(kWait, kBefore, kBarrier, kAfter).text(), seed);
        for (const Finding& finding : outcome.findings) FAIL(to_string(finding));
        CHECK(outcome.right());
    }
    check_always(pieces(kBefore, kBarrier, kAfter), "tensor-memory", "it reads Tensor Memory");
    check_always(pieces(kWait, kBarrier, kAfter), "tensor-memory", "tcgen05.fence::before_thread_sync since its wait");
    check_always(pieces(kWait, kBefore, kBarrier), "tensor-memory", "no tcgen05.fence::after_thread_sync");
}

TEST_CASE("fields of descriptors that are wrong") {
    Pieces pieces;
    SUBCASE("a wgmma descriptor") {
        pieces.descriptor_b &= ~(std::uint64_t{7} << 46);
        check_always(pieces, "matrix", "operand B: bits 46-48");
    }
    SUBCASE("a swizzle that is none") {
        pieces.descriptor_a |= std::uint64_t{3} << 61;
        check_always(pieces, "matrix", "operand A: the swizzle code");
    }
    SUBCASE("M 256") {
        pieces.instruction = 0x10020010;
        check_always(pieces, "matrix", "has M = 256");
    }
    SUBCASE("types that differ") {
        pieces.instruction |= 1U << 10;
        check_always(pieces, "matrix", "multiplies f16 with bf16");
    }
    SUBCASE("an operand beyond shared memory") {
        pieces.descriptor_b = encode_tcgen05_descriptor({.start = 0x3F000, .leading = 128, .stride = 128});
        check_always(pieces, "out-of-bounds", "operand B reaches 16 bytes at 0x3f000");
    }
    SUBCASE("an accumulator in lane 8") {
        pieces.multiply =
            "add.u32 %b0, %b0, 0x80000; tcgen05.mma.cta_group::1.kind::f16 [%b0], %d0, %d1, %b4, 0;\n"
            "sub.u32 %b0, %b0, 0x80000;\n";
        check_always(pieces, "matrix", "the accumulator starts in lane 8");
    }
    SUBCASE("A in other lanes than D") {
        pieces.instruction = 0x04020010;
        pieces.multiply = "tcgen05.mma.cta_group::1.kind::f16 [%b0], [%b0+0x100008], %d1, %b4, 0;\n";
        check_always(pieces, "matrix", "A starts in lane 16");
    }
}

TEST_CASE("what has not been allocated, or is not the warp's own") {
    Pieces pieces;
    SUBCASE("an accumulator past the columns") {
        pieces.multiply = "tcgen05.mma.cta_group::1.kind::f16 [%b0+28], %d0, %d1, %b4, 0;\n";
        check_always(pieces, "tensor-memory", "columns 28..35");
    }
    SUBCASE("a load past the columns") {
        pieces.load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1+32];\n";
        check_always(pieces, "tensor-memory", "the CTA has allocated columns 0-31");
    }
    SUBCASE("lanes of another warp") {
        pieces.load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b0+7];\n";
        check_always(pieces, "tensor-memory", "it must start in lane");
    }
    SUBCASE("an address that the lanes do not agree on") {
        pieces.load = "add.u32 %b1, %b1, %t; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1];\n";
        check_always(pieces, "tensor-memory", "differs between the lanes of a warp");
    }
    SUBCASE("a warp of which only a part comes along") {
        pieces.load = "setp.eq.u32 %p8, %t, 5; mov.u32 %r0, 0; @%p8 bra SKIP;\n" + pieces.load;
        pieces.wait_for_load += "SKIP:\n";
        pieces.free = "exit;\n";
        const Outcome outcome = run(pieces.text(), 1);
        CHECK_FALSE(outcome.right());
    }
}

/// Runs a warp's kernel and returns the findings' texts.
std::string findings_of(std::string_view body, std::uint64_t seed = 0, bool* completed = nullptr) {
    TestKernel kernel(fmt::format(".shared .align 4 .b32 slot; .shared .align 4 .b32 other; {}", body), 0,
                      blackwell(seed));
    const bool ran = kernel.run({1, 1, 1}, {64, 1, 1});
    if (completed != nullptr) *completed = ran;
    std::string text;
    for (const Finding& finding : kernel.findings()) text += to_string(finding) + '\n';
    return text;
}

std::string alloc(std::string_view where, std::string_view columns) {
    return fmt::format("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{}], {};\n", where, columns);
}
std::string dealloc(std::string_view address, std::string_view columns) {
    return fmt::format("tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, {};\n", address, columns);
}

TEST_CASE("allocation of Tensor Memory, by one warp of two") {
    constexpr std::string_view kOneWarp = "setp.lt.u32 %p0, %t, 32; @!%p0 bra DONE;\n";
    constexpr std::string_view kRead = "ld.shared.u32 %b0, [slot];\n";
    const auto text = [&](auto... parts) {
        std::string body(kOneWarp);
        (body.append(parts), ...);
        return findings_of(body + "DONE:\n");
    };
    CHECK(text(alloc("slot", "64"), kRead, dealloc("%b0", "64")).empty());
    CHECK(text(alloc("slot", "512"), kRead, dealloc("%b0", "512"), alloc("slot", "32"), dealloc("0", "32")).empty());
    CHECK(contains(text(alloc("slot", "64")), "without having freed the 64 columns"));
    CHECK(contains(text(alloc("slot", "64"), kRead, dealloc("%b0", "32")), "frees 32 columns of the 64"));
    CHECK(contains(text(alloc("slot", "64"), dealloc("32", "64"), dealloc("0", "64")), "where no allocation starts"));
    CHECK(contains(text(alloc("slot", "64"), dealloc("0", "64"), dealloc("0", "64")), "allocated are nothing"));
    CHECK(contains(
        text("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", alloc("slot", "64"), dealloc("0", "64")),
        "relinquish_alloc_permit"));
    for (const std::string_view columns : {"48", "16", "1024", "0"}) {
        CHECK(contains(text(fmt::format("mov.u32 %b1, {};", columns), alloc("slot", "%b1")),
                       "it must be 32, 64, 128, 256 or 512"));
    }
    CHECK(contains(text("and.b32 %b1, %t, 1; shl.b32 %b1, %b1, 5; add.u32 %b1, %b1, 32;", alloc("slot", "%b1"),
                        dealloc("0", "32")),
                   "the number of columns differs between the lanes"));
    CHECK(contains(text("setp.eq.u32 %p1, %t, 3; @%p1 bra DONE;\n", alloc("slot", "32")),
                   "none of whose threads has exited"));
    CHECK(contains(text("mov.u32 %b1, 0x7000; ", alloc("%b1", "32")), "out-of-bounds"));
}

TEST_CASE("an allocation waits until another warp frees what it needs") {
    // Each warp allocates 512 columns, and stores their address, 0, over a 7 that it reads back.
    const std::string both =
        fmt::format("mov.u32 %b1, 7; {}ld.shared.u32 %b2, [slot]; {}", alloc("slot", "512"), dealloc("%b2", "512"));
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        bool completed = false;
        CHECK(findings_of(both, seed, &completed).empty());
        CHECK(completed);
    }
    bool completed = true;
    const std::string text = findings_of(alloc("slot", "512"), 0, &completed);
    CHECK_FALSE(completed);
    INFO(text);
    CHECK(contains(text, "512 columns of Tensor Memory to become free"));
}

TEST_CASE("a CTA that exits, or frees its columns, while a product runs") {
    Pieces pieces;
    pieces.wait = "";
    pieces.fence = "";
    pieces.load = "mov.u32 %r0, 0x42C00000;\n";
    pieces.wait_for_load = "";
    std::map<std::string, unsigned> rules;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        for (const Finding& finding : run(pieces.text(), seed).findings) ++rules[finding.rule];
    }
    CHECK(rules["tensor-memory"] > 0);
    CHECK(rules["still-running"] > 0);
}

TEST_CASE("tcgen05.cp copies rows to the lanes of each warp, before a later product") {
    // A for an mma from Tensor Memory: 128 rows of 32 bytes, by tcgen05.cp, without a wait in between.
    Pieces pieces;
    pieces.multiply = fmt::format(
        "tcgen05.cp.cta_group::1.128x256b [%b0+16], %d0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%b0], [%b0+16], %d1, %b4, 0;\n");
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Outcome outcome = run(pieces.text(), seed);
        for (const Finding& finding : outcome.findings) FAIL(to_string(finding));
        CHECK(outcome.right());
    }
    pieces.a_rows = 100;
    const Outcome outcome = run(pieces.text(), 0);
    REQUIRE(outcome.findings.size() == 1);
    CHECK(contains(outcome.findings.front().message, "whose operand s-desc was not there"));
    CHECK(outcome.findings.front().occurrences == 28);
}

}  // namespace
}  // namespace block_attention::simulator
