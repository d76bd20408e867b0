#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "verify/simulator/test_kernel.h"

namespace block_attention::simulator {
namespace {

/// Stores %b0 of every thread to buffer 0.
constexpr std::string_view kStoreOwn =
    "mov.u32 %b63, %ctaid.x; mov.u32 %b62, %ntid.x; mad.lo.s32 %b61, %b63, %b62, %t;"
    "mul.wide.u32 %d31, %b61, 4; add.s64 %d30, %a0, %d31; st.global.u32 [%d30], %b0;";

std::vector<std::uint32_t> run(const std::string& body, std::uint32_t threads, const Options& options = {}) {
    TestKernel kernel(body + "\n" + std::string(kStoreOwn), 1, options);
    kernel.output(threads * 4);
    REQUIRE(kernel.run({1, 1, 1}, {threads, 1, 1}));
    for (const Finding& finding : kernel.findings()) FAIL(to_string(finding));
    return kernel.read<std::uint32_t>(0, threads);
}

template <typename Expected>
void check_each(const std::vector<std::uint32_t>& values, const Expected& expected) {
    for (std::uint32_t t = 0; t < values.size(); ++t) {
        INFO("thread ", t);
        CHECK(values[t] == expected(t));
    }
}

TEST_CASE("each lane runs its own number of rounds, and all meet again") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto values = run(
            "mov.u32 %b0, 0; mov.u32 %b1, 0;\n"
            "LOOP: setp.ge.u32 %p0, %b1, %t; @%p0 bra DONE; add.s32 %b0, %b0, %b1; add.s32 %b1, %b1, 1; bra.uni LOOP;\n"
            "DONE: shfl.sync.bfly.b32 %b2|%p1, %b0, 1, 31, -1; add.s32 %b0, %b0, %b2;",
            64, {.seed = seed});
        const auto sum = [](std::uint32_t t) { return t * (t - 1) / 2; };
        check_each(values, [&](std::uint32_t t) { return sum(t) + sum(t ^ 1); });
    }
}

TEST_CASE("nested branches take every lane its own way") {
    const auto values =
        run("and.b32 %b1, %t, 1; setp.ne.u32 %p0, %b1, 0; @%p0 bra ODD;\n"
            "setp.lt.u32 %p1, %t, 8; mov.u32 %b0, 20; @!%p1 bra JOIN; mov.u32 %b0, 10; bra.uni JOIN;\n"
            "ODD: mov.u32 %b0, 30; setp.eq.u32 %p1, %t, 7; @%p1 mov.u32 %b0, 40;\n"
            "JOIN: add.s32 %b0, %b0, 1;",
            32);
    check_each(values, [](std::uint32_t t) {
        if (t % 2 == 1) return t == 7 ? 41U : 31U;
        return t < 8 ? 11U : 21U;
    });
}

TEST_CASE("shuffles, votes and the elected lane") {
    check_each(run("shfl.sync.idx.b32 %b0|%p0, %t, 5, 31, -1;", 32), [](std::uint32_t) { return 5U; });
    check_each(run("shfl.sync.up.b32 %b0|%p0, %t, 3, 0, -1;", 32), [](std::uint32_t t) { return t >= 3 ? t - 3 : t; });
    check_each(run("shfl.sync.down.b32 %b0|%p0, %t, 4, 31, -1; @!%p0 mov.u32 %b0, 99;", 32),
               [](std::uint32_t t) { return t < 28 ? t + 4 : 99; });
    check_each(run("and.b32 %b1, %t, 3; setp.eq.u32 %p0, %b1, 2; vote.sync.ballot.b32 %b0, %p0, -1;", 32),
               [](std::uint32_t) { return 0x44444444U; });
    check_each(run("setp.lt.u32 %p0, %t, 40; vote.sync.all.pred %p1, %p0, -1; selp.u32 %b0, 1, 0, %p1;", 64),
               [](std::uint32_t t) { return t < 32 ? 1U : 0U; });
    check_each(run("elect.sync _|%p0, -1; selp.u32 %b0, 1, 0, %p0;", 32),  // the lowest lane, measured on H200
               [](std::uint32_t t) { return t == 0 ? 1U : 0U; });
}

TEST_CASE("a barrier orders what one warp writes before what another reads") {
    // Thread t reads what thread 255 - t wrote.
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto values =
            run(".shared .align 4 .b8 s[1024]; mov.u32 %b1, s; mad.lo.s32 %b2, %t, 4, %b1; st.shared.u32 [%b2], %t;\n"
                "bar.sync 0;\n"
                "sub.s32 %b3, 255, %t; mad.lo.s32 %b2, %b3, 4, %b1; ld.shared.u32 %b0, [%b2];",
                256, {.seed = seed});
        check_each(values, [](std::uint32_t t) { return 255 - t; });
    }
}

TEST_CASE("without the barrier some schedule reads too early") {
    std::set<std::string> rules;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        TestKernel kernel(
            ".shared .align 4 .b8 s[1024]; mov.u32 %b1, s; mad.lo.s32 %b2, %t, 4, %b1; st.shared.u32 [%b2], %t;\n"
            "sub.s32 %b3, 255, %t; mad.lo.s32 %b2, %b3, 4, %b1; ld.shared.u32 %b0, [%b2]; add.s32 %b0, %b0, 1;",
            0, {.seed = seed});
        kernel.run({1, 1, 1}, {256, 1, 1});
        for (const Finding& finding : kernel.findings()) rules.insert(finding.rule);
    }
    CHECK(rules == std::set<std::string>{"uninitialized-read"});
}

TEST_CASE("named barriers: one warp arrives and goes on, another waits") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto values = run(
            ".shared .align 4 .b8 s[4]; mov.u32 %b1, s; mov.u32 %b0, 7; setp.ge.u32 %p0, %t, 32; @%p0 bra CONSUMER;\n"
            "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [%b1], 42; bar.warp.sync -1; bar.arrive 3, 64; bra.uni END;\n"
            "CONSUMER: bar.sync 3, 64; ld.shared.u32 %b0, [%b1];\n"
            "END: add.s32 %b0, %b0, 0;",
            64, {.seed = seed});
        check_each(values, [](std::uint32_t t) { return t < 32 ? 7U : 42U; });
    }
}

TEST_CASE("a deadlock lists who waits where, and for what") {
    TestKernel kernel(
        "setp.ge.u32 %p0, %t, 32; @%p0 bra OTHER; bar.sync 1, 64; bra.uni END;\nOTHER: bar.sync 2, 64;\nEND:", 0);
    CHECK_FALSE(kernel.run({1, 1, 1}, {64, 1, 1}));
    const auto findings = kernel.findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == "deadlock");
    const std::string& message = findings[0].message;
    INFO(message);
    CHECK(message.find("warp 0") != std::string::npos);
    CHECK(message.find("warp 1") != std::string::npos);
    CHECK(message.find("test.cu:100") != std::string::npos);
    CHECK(message.find("64 threads to reach barrier 1") != std::string::npos);
    CHECK(message.find("64 threads to reach barrier 2") != std::string::npos);
}

TEST_CASE("atomics add up over all CTAs, on any number of host threads") {
    for (const unsigned threads : {1U, 4U}) {
        TestKernel kernel("atom.global.add.u32 %b0, [%a0], 1; red.global.max.u32 [%a0+4], %t;", 1,
                          {.host_threads = threads});
        kernel.input(std::vector<std::uint32_t>{5, 0});
        REQUIRE(kernel.run({200, 1, 1}, {96, 1, 1}));
        CHECK(kernel.read<std::uint32_t>(0, 2) == std::vector<std::uint32_t>{5 + 200 * 96, 95});
    }
}

/// The order in which the warps of a CTA pass an atomic counter: a schedule made visible.
std::vector<std::uint32_t> order_of(std::uint64_t seed, unsigned host_threads) {
    TestKernel kernel(
        "mov.u32 %b1, %ctaid.x; mul.wide.u32 %d0, %b1, 4; add.s64 %d1, %a1, %d0; and.b32 %b2, %t, 31;"
        "setp.ne.u32 %p0, %b2, 0; @%p0 bra END; atom.global.add.u32 %b0, [%d1], 1;\n"
        "mov.u32 %b62, %ntid.x; mad.lo.s32 %b61, %b1, %b62, %t; mul.wide.u32 %d31, %b61, 4;"
        "add.s64 %d30, %a0, %d31; st.global.u32 [%d30], %b0;\nEND:",
        2, {.seed = seed, .host_threads = host_threads});
    constexpr std::uint32_t kCtas = 8;
    constexpr std::uint32_t kThreads = 256;
    kernel.input(std::vector<std::uint32_t>(kCtas * kThreads)).input(std::vector<std::uint32_t>(kCtas));
    REQUIRE(kernel.run({kCtas, 1, 1}, {kThreads, 1, 1}));
    return kernel.read<std::uint32_t>(0, kCtas * kThreads);
}

TEST_CASE("a seed replays its schedule on any number of host threads, and seeds differ") {
    const auto first = order_of(1, 1);
    CHECK(order_of(1, 1) == first);
    CHECK(order_of(1, 3) == first);
    CHECK(order_of(2, 1) != first);
}

}  // namespace
}  // namespace block_attention::simulator
