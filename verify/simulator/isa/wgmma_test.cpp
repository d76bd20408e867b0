#include <doctest/doctest.h>

#include <algorithm>

#include "verify/simulator/layout/matrix_descriptor.h"
#include "verify/simulator/ptx/parse.h"
#include "verify/simulator/test_kernel.h"

/// wgmma as an asynchronous instruction. Its layouts and its arithmetic are those of layout/ and engines/tensor_core.h,
/// and programs/ and conformance/ compare whole products with an H200.
namespace block_attention::simulator {
namespace {

constexpr std::uint64_t kSeeds = 20;

/// 128 threads fill A (64 x 16, element 2 everywhere) and B (16 x 8, element 3), K-major without swizzle, and put the
/// descriptors into %d0 and %d1.
std::string prologue() {
    const MatrixDescriptor a{.start = 0x400, .leading = 128, .stride = 256};
    const MatrixDescriptor b{.start = 0x400 + 2048, .leading = 128, .stride = 256};
    return fmt::format(
        ".reg .f32 %f<16>; .shared .align 128 .b8 tile[4096];\n"
        "mov.u32 %b1, tile; shl.b32 %b2, %t, 4; add.u32 %b1, %b1, %b2; mov.u32 %b3, 0x40004000;\n"
        "st.shared.v4.b32 [%b1], {{%b3, %b3, %b3, %b3}}; mov.u32 %b3, 0x42004200;\n"
        "st.shared.v4.b32 [%b1+2048], {{%b3, %b3, %b3, %b3}}; fence.proxy.async.shared::cta; bar.sync 0;\n"
        "mov.u64 %d0, {}; mov.u64 %d1, {}; mul.wide.u32 %d2, %t, 4; add.s64 %d3, %a0, %d2;\n"
        "mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
        "wgmma.fence.sync.aligned;\n",
        encode_wgmma_descriptor(a), encode_wgmma_descriptor(b));
}

constexpr std::string_view kMultiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d1, 1, 1, 1, 0, 0;\n";
constexpr std::string_view kCommit = "wgmma.commit_group.sync.aligned;\n";
constexpr std::string_view kWait = "wgmma.wait_group.sync.aligned 0;\n";
constexpr std::string_view kStore = "add.f32 %f4, %f0, %f3; st.global.f32 [%d3], %f4;\n";

struct Ran {
    std::vector<float> values;
    std::vector<Finding> findings;
};

Ran run(const std::string& body, std::uint64_t seed, std::uint32_t threads = 128) {
    TestKernel kernel(body, 1, {.seed = seed});
    kernel.output(4 * threads);
    REQUIRE(kernel.run({1, 1, 1}, {threads, 1, 1}));
    return {kernel.read<float>(0, threads), kernel.findings()};
}

void check_values(const Ran& ran, float expected) {
    for (const Finding& finding : ran.findings) FAIL_CHECK(to_string(finding));
    CHECK(std::ranges::all_of(ran.values, [&](float value) { return value == expected; }));
}

TEST_CASE("a product, two that chain, and a group that may stay pending") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        // 1 + 16 * 2 * 3 in two registers.
        check_values(run(fmt::format("{}{}{}{}{}", prologue(), kMultiply, kCommit, kWait, kStore), seed), 2 * 97);
        check_values(run(fmt::format("{0}{1}{1}{2}{3}{4}", prologue(), kMultiply, kCommit, kWait, kStore), seed),
                     2 * 193);
        check_values(run(fmt::format("{0}{1}{2}{1}{2}wgmma.wait_group.sync.aligned 1;\n{3}{4}", prologue(), kMultiply,
                                     kCommit, kWait, kStore),
                         seed),
                     2 * 193);
    }
}

TEST_CASE("an accumulator that is read before the wait is reported, with the instruction that writes it") {
    for (const std::string_view early : {"", "wgmma.wait_group.sync.aligned 1;\n"}) {
        const Ran ran = run(fmt::format("{}{}{}{}{}{}", prologue(), kMultiply, kCommit, early, kStore, kWait), 3);
        REQUIRE(!ran.findings.empty());
        CHECK(ran.findings.front().rule == "uninitialized-read");
        INFO(ran.findings.front().message);
        CHECK(ran.findings.front().message.find("test.cu:100 that writes it is asynchronous") != std::string::npos);
    }
}

TEST_CASE("a compiler may move an accumulator before the wait, and go on with it") {
    const std::string_view moves = "mov.f32 %f8, %f0; mov.b32 %f9, %f3; mov.f32 %f10, %f8;\n";
    const std::string_view store = "add.f32 %f4, %f9, %f10; st.global.f32 [%d3], %f4;\n";
    const std::string_view further =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f10, %f1, %f2, %f9}, %d0, %d1, 1, 1, 1, 0, 0;\n";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        check_values(run(fmt::format("{}{}{}{}{}{}", prologue(), kMultiply, kCommit, moves, kWait, store), seed),
                     2 * 97);
        check_values(
            run(fmt::format("{0}{1}{2}{3}{4}{2}{5}{6}", prologue(), kMultiply, kCommit, moves, further, kWait, store),
                seed),
            2 * 193);
        // Written anew, the copy is none any more.
        check_values(run(fmt::format("{}{}{}{}mov.f32 %f9, 0f40000000; mov.f32 %f10, %f9;\n{}{}", prologue(), kMultiply,
                                     kCommit, moves, kWait, store),
                         seed),
                     4);
    }
}

TEST_CASE("an operand that was never written shows in what rests on it") {
    std::string body = prologue();
    body.replace(body.find("st.shared.v4.b32 [%b1+2048]"), 3, "@%p9 st.");
    body.insert(0, "setp.ne.u32 %p9, %t, 9;\n");
    const Ran ran = run(fmt::format("{}{}{}{}{}", body, kMultiply, kCommit, kWait, kStore), 1);
    REQUIRE(!ran.findings.empty());
    INFO(ran.findings.front().message);
    CHECK(ran.findings.front().message.find("whose operand B was not there when it was read") != std::string::npos);
}

TEST_CASE("who must execute it, and with what") {
    const Ran half = run(fmt::format("{}{}{}{}", prologue(), kMultiply, kCommit, kWait), 1, 64);
    REQUIRE(!half.findings.empty());
    CHECK(half.findings.front().message.find("not part of a warpgroup of 4 full warps") != std::string::npos);
    const Ran differing = run(
        fmt::format("{}setp.gt.u32 %p0, %t, 63; @%p0 mov.u64 %d1, %d0;\n{}{}{}", prologue(), kMultiply, kCommit, kWait),
        1);
    REQUIRE(!differing.findings.empty());
    CHECK(differing.findings.front().message.find("the four warps must execute the same one") != std::string::npos);
    const Ran outside = run(fmt::format("{}mov.u64 %d1, 0x3FFF;\n{}{}{}", prologue(), kMultiply, kCommit, kWait), 1);
    REQUIRE(!outside.findings.empty());
    CHECK(outside.findings.front().rule == "out-of-bounds");
}

TEST_CASE("forms that there are not, or that are not simulated") {
    const auto refusal = [](std::string_view instruction) {
        TestKernel kernel(fmt::format(".reg .f32 %f<16>; {}", instruction), 0);
        try {
            kernel.run({1, 1, 1}, {128, 1, 1});
        } catch (const ptx::PtxError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    const auto check = [&](std::string_view instruction, std::string_view part) {
        const std::string text = refusal(instruction);
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    constexpr std::string_view kD = "{%f0, %f1, %f2, %f3}";
    const auto multiply = [&](std::string_view modifiers, std::string_view rest) {
        return fmt::format("wgmma.mma_async{} {}, {};", modifiers, kD, rest);
    };
    check(multiply(".sync.aligned.m64n12k16.f32.f16.f16", "%d0, %d1, 1, 1, 1, 0, 0"), "N is 12");
    check(multiply(".sync.aligned.m64n8k8.f32.tf32.tf32", "%d0, %d1, 1, 1, 1"), "only k16");
    check(multiply(".sync.aligned.m64n8k16.f32.f16.bf16", "%d0, %d1, 1, 1, 1, 0, 0"), "only .f16.f16 and .bf16.bf16");
    check(multiply(".sync.aligned.m64n8k16.f16.bf16.bf16", "%d0, %d1, 1, 1, 1, 0, 0"), "accumulator");
    check(multiply(".sp.sync.aligned.m64n8k32.f32.f16.f16", "%d0, %d1, 1, 1, 1, 0, 0"), "sparse");
    check(multiply(".m64n8k16.f32.f16.f16", "%d0, %d1, 1, 1, 1, 0, 0"), ".sync.aligned");
    check(multiply(".sync.aligned.m64n8k16.f32.f16.f16", "%d0, %d1, 1, 0, 1, 0, 0"), "imm-scale-a is 1 or -1");
    check(multiply(".sync.aligned.m64n8k16.f32.f16.f16", "%d0, %d1, 1, 1, 1, 2, 0"), "imm-trans-a is 0 or 1");
    check(multiply(".sync.aligned.m64n8k16.f32.f16.f16", "{%b0, %b1, %b2, %b3}, %d1, 1, 1, 1, 0, 0"), "operands");
    check(multiply(".sync.aligned.m64n16k16.f32.f16.f16", "%d0, %d1, 1, 1, 1, 0, 0"), "vector of 8 registers");
    check("wgmma.wait_group.sync.aligned %b0;", "an integer is needed");
    check("wgmma.wait_group.sync.aligned 8;", "0 to 7");
    check("wgmma.fence;", ".sync.aligned");
}

}  // namespace
}  // namespace block_attention::simulator
