#include <doctest/doctest.h>

#include "verify/simulator/isa/tcgen05_test_support.h"
#include "verify/simulator/ptx/parse.h"

/// Every form of tcgen05 that ptxas 13.0 accepts for sm_100a is executed or refused by name, and what it rejects is
/// refused.
namespace block_attention::simulator {
namespace {

constexpr std::string_view kDescriptor = "0x4000404000010040";  ///< 128B swizzle, address 0x400
constexpr std::string_view kMma = "tcgen05.mma.cta_group::1.kind::f16";

/// 128 threads execute the form once all 512 columns, 16 KB of shared memory and the registers it may name are written.
/// %b2 is the address of the columns, %d0 a descriptor of the tile, %b3 an instruction descriptor (M 128, N 64, bf16,
/// f32), %p2 true, %b4..%b7 zero.
std::string kernel_body(std::string_view form, bool one_thread) {
    std::string zeros;
    for (unsigned i = 0; i < 129; ++i) zeros += fmt::format("mov.u32 %r{}, 0;\n", i);
    std::string clear;
    for (unsigned column = 0; column < 512; column += 128) {
        clear += fmt::format("tcgen05.st.sync.aligned.32x32b.x128.b32 [%b1+{}], {};\n", column, registers(128));
    }
    return fmt::format(
        ".shared .align 1024 .b8 tile[16384];\n{}mov.u32 %b63, bar; mov.u32 %b10, tile; mov.u32 %b11, 0;\n"
        "FILL: add.u32 %b12, %b10, %b11; st.shared.u32 [%b12], %b11; add.u32 %b11, %b11, 4;\n"
        "setp.lt.u32 %p3, %b11, 16384; @%p3 bra FILL; fence.proxy.async.shared::cta;\n"
        "{}{}tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;\n"
        "tcgen05.fence::after_thread_sync; mov.u32 %b2, %b0; mov.u64 %d0, {}; mov.u32 %b3, 0x08100490;\n"
        "setp.eq.u32 %p2, %b11, 16384; mov.u32 %b4, 0; mov.u32 %b5, 0; mov.u32 %b6, 0; mov.u32 %b7, 0;\n"
        "mov.u16 %h0, 1; mov.u32 %b8, slot; cvta.shared.u64 %d1, bar; cvta.shared.u64 %d2, slot;\n"
        "{}{}\n{}AFTER: tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;\n{}{}",
        allocate(512), zeros, clear, kDescriptor, one_thread ? "@!%p0 bra AFTER;\n" : "", form,
        one_thread ? kCommit : "", one_thread ? wait_for_bar(0) : "", free_columns(512));
}

void check_executed(std::string_view form, bool one_thread) {
    CAPTURE(form);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        TestKernel kernel(kernel_body(form, one_thread), 0, blackwell(seed));
        bool ran = false;
        REQUIRE_NOTHROW(ran = kernel.run({1, 1, 1}, {128, 1, 1}));
        CHECK(ran);
        for (const Finding& finding : kernel.findings()) FAIL_CHECK(to_string(finding));
    }
}

void check_by_thread(std::string_view form) { check_executed(form, true); }
void check_by_warps(std::string_view form) { check_executed(form, false); }

std::string refusal(std::string_view form) {
    TestKernel kernel(fmt::format(".reg .b32 %r<129>; .shared .align 8 .b64 bar; .shared .align 4 .b32 slot; {}", form),
                      0, blackwell());
    try {
        kernel.run({1, 1, 1}, {32, 1, 1});
    } catch (const ptx::PtxError& error) {
        return error.what();
    }
    return "accepted";
}

void check_refused(std::string_view form, std::string_view part) {
    const std::string text = refusal(form);
    CAPTURE(form);
    INFO(text);
    CHECK(contains(text, part));
}

TEST_CASE("tcgen05.mma: forms that are executed") {
    for (const std::string_view a : {"%d0", "[%b2+64]"}) {
        const auto check = [&](std::string_view modifiers, std::string_view rest) {
            check_by_thread(fmt::format("{}{} [%b2], {}, %d0, %b3, {};", kMma, modifiers, a, rest));
        };
        for (const std::string_view add_d : {"%p2", "!%p2", "0", "1"}) {
            check("", add_d);
            check("", fmt::format("{{%b4, %b5, %b6, %b7}}, {}", add_d));
        }
        check("", "%p2, 0");
        check("", "%p2, 15");
        check("", "{%b4, %b5, %b6, %b7}, !%p2, 7");
        for (const std::string_view usage : {"fill", "use", "lastuse", "discard"}) {
            check(fmt::format(".collector::a::{}", usage), "%p2");
        }
    }
    check_by_thread(fmt::format("{} [%b2+128], %d0, %d0, %b3, 1;", kMma));
    check_by_thread("tcgen05.mma.kind::f16.cta_group::1 [%b2], %d0, %d0, %b3, 1;");
}

TEST_CASE("tcgen05: other forms of one thread that are executed") {
    for (const std::string_view shape :
         {"128x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"}) {
        check_by_thread(fmt::format("tcgen05.cp.cta_group::1.{} [%b2+8], %d0;", shape));
    }
    check_by_thread("tcgen05.shift.cta_group::1.down [%b2+8];");
    check_by_thread("tcgen05.shift.down.cta_group::1 [%b2];");
    check_by_thread("tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;");
    // The form of the commit that ends each of these, and two others, of which the barrier would need another arrival.
    constexpr std::string_view kAgain = "B: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra B;\n";
    for (const std::string_view commit :
         {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];",
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];",
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%b63], %h0;",
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%d1], %h0;"}) {
        check_by_thread(fmt::format(
            "{} {}mbarrier.inval.shared::cta.b64 [bar]; mbarrier.init.shared::cta.b64 [bar], 1;", commit, kAgain));
    }
}

TEST_CASE("tcgen05: forms of a warp that are executed") {
    // Shapes and widths of tcgen05.ld and tcgen05.st: see tcgen05_memory_test.cpp.
    check_by_warps("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b1];");
    check_by_warps(".reg .f32 %f<2>; tcgen05.ld.sync.aligned.32x32b.x2.b32 {%f0, %f1}, [%b1+3];");
    check_by_warps("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    check_by_warps(
        "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b0, 512;\n"
        "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d2], 512;");
    check_by_warps(
        "mov.u32 %b20, 512; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b0, %b20;\n"
        "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%b8], %b20;");
}

TEST_CASE("tcgen05.mma: forms that are refused") {
    const auto check = [](std::string_view modifiers, std::string_view operands, std::string_view part) {
        check_refused(fmt::format("tcgen05.mma{} {};", modifiers, operands), part);
    };
    constexpr std::string_view kOperands = "[%b2], %d0, %d0, %b3, %p2";
    check(".cta_group::2.kind::f16", kOperands, ".cta_group::2");
    check(".kind::f16", kOperands, ".cta_group::1 is missing");
    check(".cta_group::1", kOperands, ".kind::f16 is missing");
    for (const std::string_view kind : {"tf32", "f8f6f4", "i8"}) {
        check(fmt::format(".cta_group::1.kind::{}", kind), kOperands, fmt::format(".kind::{} is not simulated", kind));
    }
    for (const std::string_view kind : {"mxf8f6f4", "mxf4", "mxf4nvf4"}) {
        check(fmt::format(".cta_group::1.kind::{}.block_scale", kind), "[%b2], %d0, %d0, %b3, [%b4], [%b5], %p2",
              ".block_scale is not simulated");
    }
    check(".cta_group::1.kind::bf16", kOperands, ".kind::bf16 does not exist");
    check(".ws.cta_group::1.kind::f16", kOperands, ".ws");
    check(".sp.cta_group::1.kind::f16", "[%b2], %d0, %d0, [%b4], %b3, %p2", ".sp");
    check(".cta_group::1.kind::f16", "%b2, %d0, %d0, %b3, %p2", "an address in Tensor Memory is needed");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3, {%b4, %b5}, %p2", "2 words of disabled lanes");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3, {%b4, %b5, %b6, %b7, %b4, %b5, %b6, %b7}, %p2",
          "8 words of disabled lanes");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3, %p2, 16", "scale-input-d is 0 to 15");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3, %p2, -1", "scale-input-d is 0 to 15");
    check(".cta_group::1.kind::f8f6f4", "[%b2], %d0, %d0, %b3, %p2, 1", ".kind::f8f6f4 is not simulated");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3, %b4", "a predicate is needed");
    check(".cta_group::1.kind::f16", "[%b2], %d0, %d0, %b3", "4 operands");
    check(".cta_group::1.kind::f16", "[%b2], %b3, %d0, %b3, %p2", "64-bit");
    check(".cta_group::1.kind::f16.ashift", "[%b2], [%b4], %d0, %b3, %p2", ".ashift is not simulated");
    check(".cta_group::1.kind::f16.ashift.collector::a::lastuse", "[%b2], [%b4], %d0, %b3, %p2",
          ".ashift is not simulated");
    check(".cta_group::1.kind::f16.ashift.collector::a::use", "[%b2], [%b4], %d0, %b3, %p2", ".ashift excludes");
    check(".cta_group::1.kind::f16.ashift.collector::a::fill", "[%b2], [%b4], %d0, %b3, %p2", ".ashift excludes");
    check(".cta_group::1.kind::f16.collector::a::keep", kOperands, "modifier .collector::a::keep");
}

TEST_CASE("tcgen05.alloc, dealloc and relinquish_alloc_permit: forms that are refused") {
    for (const unsigned columns : {0U, 16U, 96U, 1024U}) {
        check_refused(fmt::format("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {};", columns),
                      "32, 64, 128, 256 or 512");
        check_refused(fmt::format("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b0, {};", columns),
                      "32, 64, 128, 256 or 512");
    }
    check_refused("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;", ".cta_group::2");
    check_refused("tcgen05.alloc.sync.aligned.shared::cta.b32 [slot], 32;", ".cta_group::1 is missing");
    check_refused("tcgen05.alloc.cta_group::1.shared::cta.b32 [slot], 32;", ".sync.aligned is missing");
    check_refused("tcgen05.alloc.cta_group::1.sync.aligned.shared::cluster.b32 [slot], 32;", ".shared::cta");
    check_refused("tcgen05.alloc.cta_group::1.sync.aligned.global.b32 [%d0], 32;", ".shared::cta");
    check_refused("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b64 [slot], 32;", ".b32");
    check_refused("tcgen05.dealloc.cta_group::1.sync.aligned.b32 [%b0], 32;", "where a value is needed");
    check_refused("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b0;", "1 operands");
    check_refused("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %b0, 32;", ".cta_group::2");
    check_refused("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;", ".cta_group::2");
    check_refused("tcgen05.relinquish_alloc_permit.cta_group::1;", ".sync.aligned is missing");
}

TEST_CASE("tcgen05.cp, shift, commit and fences: forms that are refused") {
    check_refused("tcgen05.cp.cta_group::1.4x256b [%b0], %d0;", ".4x256b is not simulated");
    check_refused("tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%b0], %d0;", "decompression");
    check_refused("tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64 [%b0], %d0;", "decompression");
    check_refused("tcgen05.cp.cta_group::2.128x256b [%b0], %d0;", ".cta_group::2");
    check_refused("tcgen05.cp.cta_group::1.64x128b [%b0], %d0;", "its shape is");
    check_refused("tcgen05.cp.cta_group::1.32x128b.warpx2::02_13 [%b0], %d0;", "its shape is");
    check_refused("tcgen05.cp.cta_group::1.128x256b.warpx4 [%b0], %d0;", "its shape is");
    check_refused("tcgen05.cp.cta_group::1.128x256b %b0, %d0;", "an address in Tensor Memory");
    check_refused("tcgen05.shift.cta_group::1 [%b0];", ".down is missing");
    check_refused("tcgen05.shift.cta_group::2.down [%b0];", ".cta_group::2");
    constexpr std::string_view kOne = "tcgen05.commit.cta_group::1.mbarrier::arrive::one";
    check_refused(fmt::format("{}.shared::cta.b64 [bar];", kOne), ".shared::cluster");
    check_refused(fmt::format("{}.shared.b64 [bar];", kOne), ".shared::cluster");
    check_refused(fmt::format("{}.shared::cluster.b64 [%b0], %h0;", kOne), "2 operands");
    check_refused(fmt::format("{}.shared::cluster.multicast::cluster.b64 [%b0];", kOne), "1 operands");
    check_refused("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%b0];", ".cta_group::2");
    check_refused("tcgen05.commit.cta_group::1.shared::cluster.b64 [%b0];", ".mbarrier::arrive::one");
    check_refused("tcgen05.fence::before_thread_sync.sync.aligned;", "modifier .sync");
    check_refused("tcgen05.fence::after_thread_sync.sync.aligned;", "modifier .sync");
    check_refused("tcgen05.mystery;", "its operation is missing");
}

TEST_CASE("tcgen05.ld, st and wait: forms that are refused") {
    check_refused("tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r0, %r1, %r2}, [%b0];", "number of repetitions");
    check_refused("tcgen05.ld.sync.aligned.16x128b.x128.b32 {%r0}, [%b0];", "up to .x64");
    check_refused("tcgen05.st.sync.aligned.16x256b.x64.b32 [%b0], {%r0};", "up to .x32");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1, %r2}, [%b0];", "2 registers");
    check_refused("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r0, %r1}, [%b0];", "4 registers");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r0, [%b0];", "in braces");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%d0}, [%b0];", "32-bit");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, %b0;", "an address in Tensor Memory");
    check_refused("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%b0], %b1;", "an integer is needed");
    check_refused("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%b0];", "2 operands");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%b0], 4;", "3 operands");
    check_refused("tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%r0}, [%b0];", "modifier .unpack::16b");
    check_refused("tcgen05.st.sync.aligned.32x32b.x1.pack::16b.b32 [%b0], {%r0};", "modifier .pack::16b");
    check_refused("tcgen05.ld.sync.aligned.64x32b.x1.b32 {%r0}, [%b0];", "the shape is missing");
    check_refused("tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r0, %r1}, %r2, [%b0];", ".red");
    check_refused("tcgen05.ld.32x32b.x1.b32 {%r0}, [%b0];", ".sync.aligned is missing");
    check_refused("tcgen05.st.sync.32x32b.x1.b32 [%b0], {%r0};", ".sync.aligned is missing");
    check_refused("tcgen05.wait::ld;", ".sync.aligned is missing");
    check_refused("tcgen05.wait::st.sync;", ".sync.aligned is missing");
}

TEST_CASE("what other architectures have, or nobody simulates") {
    check_refused(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [slot], [bar]; "
        "tcgen05.wait::ld.sync.aligned;",
        "clusterlaunchcontrol is not simulated");
    Simulator hopper({.architecture = 90});
    const auto module = hopper.load(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n",
        "hopper.ptx");
    CHECK_THROWS_WITH_AS(hopper.check(module, "k"), doctest::Contains("exists for sm_100a alone"), ptx::PtxError);
}

}  // namespace
}  // namespace block_attention::simulator
