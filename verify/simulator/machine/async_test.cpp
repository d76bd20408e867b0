#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "verify/simulator/layout/swizzle.h"
#include "verify/simulator/layout/tensor_map.h"
#include "verify/simulator/test_kernel.h"

/// mbarrier objects, asynchronous copies and clusters, under many schedules.
namespace block_attention::simulator {
namespace {

constexpr std::uint64_t kSeeds = 30;

std::vector<std::uint32_t> numbers(std::size_t count) {
    std::vector<std::uint32_t> values(count);
    std::iota(values.begin(), values.end(), 1000U);
    return values;
}

void require_no_findings(TestKernel& kernel) {
    for (const Finding& finding : kernel.findings()) FAIL(to_string(finding));
}

/// Runs a kernel that must be reported, and returns the finding's text.
std::string only_finding(TestKernel& kernel, std::string_view rule) {
    const auto findings = kernel.findings();
    REQUIRE(!findings.empty());
    INFO(to_string(findings.front()));
    CHECK(findings.front().rule == rule);
    return to_string(findings.front());
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Thread 0 sets up an mbarrier object for one arrival, the CTA meets.
constexpr std::string_view kBarrier =
    ".shared .align 8 .b64 bar; .shared .align 128 .b8 tile[4096];\n"
    "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
    "fence.mbarrier_init.release.cluster; bar.sync 0;\n";

/// Waits for the phase of parity `parity` of bar.
std::string wait(unsigned parity) {
    return fmt::format("W{0}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], {0}; @!%p1 bra W{0};\n", parity);
}

/// Each thread stores the word of the tile that has its number.
constexpr std::string_view kStoreWord =
    "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.u32 %b1, %b1, %b2; ld.shared.u32 %b3, [%b1];\n"
    "cvt.u64.u32 %d2, %b2; add.s64 %d3, %a1, %d2; st.global.u32 [%d3], %b3;\n";

TEST_CASE("a bulk copy brings its bytes before the barrier's phase completes") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        TestKernel kernel(
            fmt::format("{}@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n"
                        "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%a0], 512, "
                        "[bar];\n{}{}",
                        kBarrier, wait(0), kStoreWord),
            2, {.seed = seed});
        const auto values = numbers(128);
        kernel.input(values).output(512);
        REQUIRE(kernel.run({1, 1, 1}, {128, 1, 1}));
        require_no_findings(kernel);
        CHECK(kernel.read<std::uint32_t>(1, 128) == values);
    }
}

TEST_CASE("without the wait the bytes are not there") {
    unsigned found = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        TestKernel kernel(
            fmt::format("{}@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n"
                        "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%a0], 512, "
                        "[bar];\n{}{}",
                        kBarrier, kStoreWord, wait(0)),
            2, {.seed = seed});
        kernel.input(numbers(128)).output(512);
        REQUIRE(kernel.run({1, 1, 1}, {128, 1, 1}));
        for (const Finding& finding : kernel.findings()) {
            CHECK(finding.rule == "uninitialized-read");
            ++found;
        }
    }
    CHECK(found > 0);
}

TEST_CASE("a phase that expects too much never completes, and everybody who waits is named") {
    TestKernel kernel(fmt::format("{}@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
                                  "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], "
                                  "[%a0], 512, [bar];\n{}",
                                  kBarrier, wait(0)),
                      2);
    kernel.input(numbers(128)).output(512);
    CHECK_FALSE(kernel.run({1, 1, 1}, {64, 1, 1}));
    const std::string text = only_finding(kernel, "deadlock");
    INFO(text);
    CHECK(contains(text, "warps 0, 1"));
    CHECK(contains(text, "512 bytes of transactions outstanding"));
}

TEST_CASE("operations on what is no mbarrier object, and arrivals past zero") {
    SUBCASE("not initialised") {
        TestKernel kernel(".shared .align 8 .b64 bar; mbarrier.arrive.shared::cta.b64 _, [bar];", 0);
        CHECK(kernel.run({1, 1, 1}, {1, 1, 1}));
        CHECK(contains(only_finding(kernel, "mbarrier"), "finds no mbarrier object there"));
    }
    SUBCASE("overwritten") {
        TestKernel kernel(
            ".shared .align 8 .b64 bar; mbarrier.init.shared::cta.b64 [bar], 1; st.shared.u32 [bar], 5;\n"
            "mbarrier.arrive.shared::cta.b64 _, [bar];",
            0);
        CHECK(kernel.run({1, 1, 1}, {1, 1, 1}));
        CHECK(contains(only_finding(kernel, "mbarrier"), "written over"));
    }
    SUBCASE("past zero") {
        TestKernel kernel(
            ".shared .align 8 .b64 bar; mbarrier.init.shared::cta.b64 [bar], 1;\n"
            "mbarrier.arrive.shared::cta.b64 _, [bar], 2;",
            0);
        CHECK_FALSE(kernel.run({1, 1, 1}, {1, 1, 1}));
        CHECK(contains(only_finding(kernel, "mbarrier"), "arrives more often"));
    }
    SUBCASE("misaligned") {
        TestKernel kernel(".shared .align 8 .b8 s[16]; mov.u32 %b0, s; mbarrier.init.shared::cta.b64 [%b0+4], 1;", 0);
        kernel.run({1, 1, 1}, {1, 1, 1});
        CHECK(contains(only_finding(kernel, "misaligned"), "not aligned to 8 bytes"));
    }
}

TEST_CASE("state tokens, test_wait and drops") {
    // 32 threads arrive one by one; half of them drop out, so that the next phase needs 16.
    TestKernel kernel(
        ".shared .align 8 .b64 bar; setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0;\n"
        "setp.lt.u32 %p2, %t, 16; @%p2 mbarrier.arrive_drop.shared::cta.b64 %d0, [bar];\n"
        "@!%p2 mbarrier.arrive.shared::cta.b64 %d0, [bar];\n"
        "A: mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d0; @!%p1 bra A;\n"
        "mov.u32 %b1, 7; bar.sync 0; @%p2 bra DONE; mbarrier.arrive.shared::cta.b64 %d0, [bar];\n"
        "mbarrier.pending_count.b64 %b1, %d0;\n"
        "B: mbarrier.try_wait.shared::cta.b64 %p1, [bar], %d0; @!%p1 bra B;\n"
        "DONE: mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a0, %d1; st.global.u32 [%d2], %b1;",
        1);
    kernel.output(128);
    REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
    require_no_findings(kernel);
    auto pending = kernel.read<std::uint32_t>(0, 32);
    for (unsigned t = 0; t < 16; ++t) CHECK(pending[t] == 7);
    std::sort(pending.begin() + 16, pending.end());
    for (unsigned t = 16; t < 32; ++t) CHECK(pending[t] == t - 15);
}

/// The bytes of a 2-D tensor map over buffer 0 of 32-bit words, 32 words a row, box of 8 x 32.
std::vector<std::byte> map_bytes(std::uint64_t address, SwizzleMode swizzle, std::uint64_t rows) {
    TensorMap map;
    map.type = TensorMapType::uint32;
    map.rank = 2;
    map.address = address;
    map.dims = {32, rows, 1, 1, 1};
    map.byte_strides = {128, 0, 0, 0};
    map.box = {32, 8, 1, 1, 1};
    map.swizzle = swizzle;
    REQUIRE(validate(map, 90).empty());
    const auto bytes = encode_tensor_map(map);
    return {bytes.begin(), bytes.end()};
}

TEST_CASE("a tensor copy with a swizzle, its rows beyond the tensor filled with zeros, and the way back") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        TestKernel kernel(
            fmt::format("{}@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; mov.u32 %b10, 4;\n"
                        "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], "
                        "[%a2, {{0, %b10}}], [bar];\n{}{}"
                        "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%a3, {{0, 0}}], [tile];\n"
                        "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;",
                        kBarrier, wait(0), kStoreWord),
            5, {.seed = seed});
        const auto values = numbers(32 * 9);
        kernel.input(values).output(1024);
        kernel.input(map_bytes(kernel.address(0), SwizzleMode::b128, 9));
        kernel.output(1024);  // in whose place the map of buffer 4 goes
        kernel.output(1024);
        kernel.write(3, map_bytes(kernel.address(4), SwizzleMode::b128, 8));
        REQUIRE(kernel.run({1, 1, 1}, {256, 1, 1}));
        require_no_findings(kernel);
        const auto in_shared = kernel.read<std::uint32_t>(1, 256);
        const auto back = kernel.read<std::uint32_t>(4, 256);
        std::uint32_t base = 0x400;
        while (base % 128 != 0 || base < 0x408) base += 8;  // where `tile` lies, behind `bar`
        for (std::uint32_t word = 0; word < 256; ++word) {
            const std::uint32_t expected = word / 32 + 4 < 9 ? values[4 * 32 + word] : 0;
            CHECK(in_shared[(swizzled(SwizzleMode::b128, base + 4 * word) - base) / 4] == expected);
            CHECK(back[word] == expected);
        }
    }
}

TEST_CASE("what is wrong with a tensor copy ends the kernel, or is named") {
    const auto run = [](std::string_view coordinates, const std::vector<std::byte>* bytes) {
        TestKernel kernel(
            fmt::format("{}@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%a1, "
                        "{{{}}}], [bar];",
                        kBarrier, coordinates),
            2);
        kernel.input(numbers(32 * 8));
        kernel.input(bytes != nullptr ? *bytes : map_bytes(kernel.address(0), SwizzleMode::none, 8));
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(!findings.empty());
        return to_string(findings.front());
    };
    const std::string unaligned = run("1, 0", nullptr);
    INFO(unaligned);
    CHECK(contains(unaligned, "must be a multiple of 4"));
    const std::vector<std::byte> garbage(128, std::byte{5});
    CHECK(contains(run("0, 0", &garbage), "tensor-map"));
    const auto beyond = map_bytes(0x1000000000, SwizzleMode::none, 100);
    CHECK(contains(run("0, 50", &beyond), "out-of-bounds"));
}

TEST_CASE("a CTA that exits before its copy has read the source is reported") {
    unsigned found = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        TestKernel kernel(
            ".shared .align 128 .b8 tile[4096]; mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.u32 %b1, %b1, %b2;\n"
            "st.shared.u32 [%b1], %t; fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p0, %t, 0;\n"
            "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%a0], [tile], 128; @%p0 cp.async.bulk.commit_group;",
            1, {.seed = seed});
        kernel.output(128);
        kernel.run({1, 1, 1}, {32, 1, 1});
        for (const Finding& finding : kernel.findings()) found += finding.rule == "still-running" ? 1 : 0;
    }
    CHECK(found > 0);
}

TEST_CASE("cp.async in groups, with less to read than to write, and with an mbarrier") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        TestKernel kernel(
            fmt::format(".shared .align 8 .b64 bar; .shared .align 128 .b8 tile[4096];\n"
                        "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0;\n"
                        "mov.u32 %b4, tile; shl.b32 %b5, %t, 2; add.u32 %b4, %b4, %b5; cvt.u64.u32 %d4, %b5;\n"
                        "add.s64 %d5, %a0, %d4; setp.lt.u32 %p3, %t, 8; selp.b32 %b6, 0, 4, %p3;\n"
                        "cp.async.ca.shared.global [%b4], [%d5], 4, %b6; cp.async.commit_group;\n"
                        "cp.async.ca.shared.global [%b4+128], [%d5+128], 4;\n"
                        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; cp.async.wait_group 0;\n{}"
                        "{}ld.shared.u32 %b3, [%b1+128]; st.global.u32 [%d3+128], %b3;",
                        kStoreWord, wait(0)),
            2, {.seed = seed});
        const auto values = numbers(64);
        kernel.input(values).output(256);
        REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
        require_no_findings(kernel);
        const auto copied = kernel.read<std::uint32_t>(1, 64);
        for (unsigned i = 0; i < 64; ++i) CHECK(copied[i] == (i < 8 ? 0 : values[i]));
    }
}

TEST_CASE("CTAs of a cluster: ranks, remote stores, loads and arrivals, and a multicast") {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        // CTA r writes 10 r into the next CTA's shared memory and arrives at its barrier; CTA 0 multicasts 64 bytes.
        TestKernel kernel(
            fmt::format(
                ".shared .align 8 .b64 bar; .shared .align 8 .b32 word; .shared .align 128 .b8 tile[128];\n"
                "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 2;\n"
                "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
                "mov.u32 %b0, %cluster_ctarank; mov.u32 %b1, %cluster_nctarank; add.u32 %b2, %b0, 1;\n"
                "rem.u32 %b2, %b2, %b1; mul.lo.u32 %b3, %b0, 10; mapa.shared::cluster.u32 %b4, word, %b2;\n"
                "mapa.shared::cluster.u32 %b5, bar, %b2; setp.eq.u32 %p2, %b0, 0; and.pred %p3, %p0, %p2;\n"
                "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64; mov.u16 %h0, 0xF;\n"
                "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
                "[%a0], 64, [bar], %h0;\n"
                "@%p0 st.shared::cluster.u32 [%b4], %b3;\n"
                "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%b5];\n{}"
                "@!%p0 bra DONE; ld.shared.u32 %b6, [word]; ld.shared.u32 %b7, [tile+4];\n"
                "mov.u32 %b8, %ctaid.x; mul.wide.u32 %d0, %b8, 8; add.s64 %d1, %a1, %d0;\n"
                "st.global.v2.u32 [%d1], {{%b6, %b7}};\n"
                "DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
                wait(0)),
            2, {.seed = seed});
        kernel.input(numbers(16)).output(64);
        REQUIRE(kernel.run({8, 1, 1}, {64, 1, 1}, 0, {4, 1, 1}));
        require_no_findings(kernel);
        const auto words = kernel.read<std::uint32_t>(1, 16);
        for (unsigned cta = 0; cta < 8; ++cta) {
            CHECK(words[2 * cta] == 10 * ((cta + 3) % 4));
            CHECK(words[2 * cta + 1] == 1001);
        }
    }
}

TEST_CASE("shared memory of CTAs that are not there, or that .shared::cta does not reach") {
    const auto run = [](std::string_view access, Dim3 cluster) {
        TestKernel kernel(fmt::format(".shared .align 8 .b32 word; st.shared.u32 [word], 1; mov.u32 %b0, word;\n"
                                      "add.u32 %b1, %b0, 0x1000000; mov.u32 %b2, %cluster_ctarank;\n"
                                      "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p0, %b2, 0;\n{}\n"
                                      "barrier.cluster.arrive; barrier.cluster.wait;",
                                      access),
                          0);
        kernel.run({2, 1, 1}, {1, 1, 1}, 0, cluster);
        const auto findings = kernel.findings();
        return findings.empty() ? std::string("none") : to_string(findings.front());
    };
    CHECK(run("@%p0 ld.shared::cluster.u32 %b3, [%b1]; @%p0 add.u32 %b3, %b3, 1;", {2, 1, 1}) == "none");
    CHECK(contains(run("@%p0 ld.shared.u32 %b3, [%b1];", {2, 1, 1}), "only .shared::cluster and generic"));
    CHECK(contains(run("@%p0 ld.shared::cluster.u32 %b3, [%b1];", {1, 1, 1}), "while the cluster has 1 CTAs"));
}

}  // namespace
}  // namespace block_attention::simulator
