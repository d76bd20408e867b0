#include <doctest/doctest.h>

#include "verify/simulator/layout/tensor_map.h"
#include "verify/simulator/ptx/parse.h"
#include "verify/simulator/test_kernel.h"

/// Every form of mbarrier, asynchronous copy, fence and barrier that ptxas 13.0 accepts for both sm_90a and sm_100a is
/// executed, and what it rejects is refused.
namespace block_attention::simulator {
namespace {

/// Thread 0 of a warp executes a form once. In its reach: the mbarrier objects bar (100 arrivals expected) and done
/// (1), 4 KB of shared memory `tile`, all of it written, the buffer %a0 of 8 KB, the buffer %a1 that is a tensor map of
/// rank `rank` over %a0, boxes of 8 words in every dimension; %b5 is the address of bar as .shared::cluster has it.
/// With `completes`, done is to complete so many bytes before the kernel ends.
std::string kernel_body(std::string_view form, unsigned completes) {
    std::string text =
        ".shared .align 8 .b64 bar; .shared .align 8 .b64 done; .shared .align 128 .b8 tile[4096];\n"
        "setp.eq.u32 %p0, %t, 0; mov.u32 %b5, bar; mov.u32 %b6, done; mov.u32 %b7, tile; mov.u32 %b8, 0; mov.u16 %h5, "
        "1;\n"
        "mov.u64 %d5, 0; mov.u32 %b9, 0;\n"
        "FILL: add.u32 %b10, %b7, %b9; st.shared.u32 [%b10], %b9; add.u32 %b9, %b9, 4; setp.lt.u32 %p1, %b9, 4096; "
        "@%p1 "
        "bra FILL;\n"
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 100; @%p0 mbarrier.init.shared.b64 [done], 1;\n"
        "fence.mbarrier_init.release.cluster; bar.sync 0;\n";
    if (completes != 0) {
        text += fmt::format("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], {};\n", completes);
    }
    text += fmt::format("@!%p0 bra AFTER; {}\nAFTER:\n", form);
    if (completes != 0) {
        text += "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [done], 0; @!%p1 bra WAIT;\n";
    }
    return text + "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; cp.async.wait_all;";
}

constexpr std::uint32_t kBoxWords = 8;

std::vector<std::byte> map_over(std::uint64_t address, std::uint32_t rank) {
    TensorMap map;
    map.type = TensorMapType::uint32;
    map.rank = rank;
    map.address = address;
    std::uint64_t stride = sizeof(std::uint32_t);
    for (std::uint32_t i = 0; i < rank; ++i) {
        map.dims.at(i) = i < 3 ? kBoxWords : 1;
        map.box.at(i) = i == 0 ? kBoxWords : i < 3 ? 2 : 1;
        if (i > 0) map.byte_strides.at(i - 1) = stride;
        stride *= kBoxWords;
    }
    REQUIRE(validate(map, 90).empty());
    const auto bytes = encode_tensor_map(map);
    return {bytes.begin(), bytes.end()};
}

void run_form(TestKernel& kernel, std::uint32_t rank) {
    kernel.input(std::vector<std::uint32_t>(2048, 3));
    kernel.input(map_over(kernel.address(0), rank));
    const bool ran = kernel.run({1, 1, 1}, {32, 1, 1});
    CHECK(ran);
    for (const Finding& finding : kernel.findings()) FAIL_CHECK(to_string(finding));
}

void execute(std::string_view form, unsigned completes = 0, std::uint32_t rank = 2) {
    CAPTURE(form);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        TestKernel kernel(kernel_body(form, completes), 2, {.seed = seed});
        run_form(kernel, rank);
    }
}

void refuse(std::string_view form, std::string_view reason) {
    CAPTURE(form);
    TestKernel kernel(kernel_body(form, 0), 2);
    std::string said = "accepted";
    try {
        run_form(kernel, 2);
    } catch (const ptx::PtxError& error) {
        said = error.what();
    }
    INFO(said);
    CHECK(said.find(reason) != std::string::npos);
}

TEST_CASE("mbarrier") {
    for (const std::string_view form :
         {"mbarrier.inval.shared::cta.b64 [bar];",
          "mbarrier.inval.shared.b64 [bar];",
          "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;",
          "mbarrier.expect_tx.shared::cta.b64 [bar], 16;",
          "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%b5], 16;",
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;",
          "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%b5], 16;",
          "mbarrier.arrive.shared::cta.b64 %d0, [bar];",
          "mbarrier.arrive.shared::cta.b64 _, [bar];",
          "mbarrier.arrive.shared.b64 %d0, [bar], 3;",
          "mbarrier.arrive.shared::cta.b64 _, [bar], %b8;",
          "mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];",
          "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];",
          "mbarrier.arrive.shared::cluster.b64 _, [%b5];",
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%b5];",
          "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%b5], 2;",
          "mbarrier.arrive.expect_tx.shared::cta.b64 %d0, [bar], 16;",
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;",
          "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 16;",
          "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [bar], 16;",
          "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%b5], 16;",
          "mbarrier.arrive_drop.shared::cta.b64 %d0, [bar];",
          "mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [bar], 16;",
          "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%b5];",
          "mbarrier.arrive.noComplete.shared::cta.b64 %d0, [bar], 2;",
          "mbarrier.arrive_drop.noComplete.release.cta.shared::cta.b64 %d0, [bar], 2;",
          "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;",
          "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], 0;",
          "mbarrier.arrive.shared::cta.b64 %d0, [bar]; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d0;",
          "mbarrier.arrive.shared::cta.b64 %d0, [bar]; mbarrier.try_wait.shared.b64 %p1, [bar], %d0;",
          "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;",
          "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], 0, 1000;",
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], %b8;",
          "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [bar], 1;",
          "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [bar], 1, %b8;",
          "mbarrier.arrive.shared::cta.b64 %d0, [bar]; mbarrier.pending_count.b64 %b0, %d0;",
          "cvta.shared.u64 %d1, bar; mbarrier.arrive.b64 %d0, [%d1]; mbarrier.test_wait.parity.b64 %p1, [%d1], 1;",
          "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];",
          "cp.async.mbarrier.arrive.shared::cta.b64 [bar];"}) {
        execute(form);
    }
    refuse("mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%b5], 0;", ".shared::cta");
    refuse("mbarrier.arrive.shared.b64 [bar];", "1 operands");
    refuse("mbarrier.arrive.relaxed.shared::cta.b64 _, [bar];", "come together");
    refuse("mbarrier.arrive.shared::cluster.b64 %d0, [%b5];", "its destination is _");
    refuse("mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 2;", "parity is 0 or 1");
    refuse("mbarrier.init.shared::cluster.b64 [%b5], 1;", ".shared::cta");
    refuse("mbarrier.arrive.global.b64 _, [%a0];", ".shared memory");
    refuse("mbarrier.explode.shared::cta.b64 [bar];", "operation is missing");
}

TEST_CASE("tensor copies") {
    const std::string_view coordinates[] = {"", "{0}", "{0, 1}", "{0, 0, %b8}", "{0, 0, 0, 0}", "{0, 0, 0, 0, 0}"};
    for (std::uint32_t rank = 1; rank <= 5; ++rank) {
        const std::uint32_t bytes = 4 * kBoxWords * (rank >= 2 ? 2 : 1) * (rank >= 3 ? 2 : 1);
        for (const std::string_view space : {"shared::cta", "shared::cluster"}) {
            for (const std::string_view tile : {"", ".tile"}) {
                execute(
                    fmt::format("cp.async.bulk.tensor.{}d.{}.global{}.mbarrier::complete_tx::bytes [tile], [%a1, {}], "
                                "[done];",
                                rank, space, tile, coordinates[rank]),
                    bytes, rank);
            }
        }
        execute(
            fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                        "[tile], [%a1, {}], [done], %d5;",
                        rank, coordinates[rank]),
            bytes, rank);
        execute(fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes."
                            "multicast::cluster.L2::cache_hint [tile], [%a1, {}], [done], %h5, %d5;",
                            rank, coordinates[rank]),
                bytes, rank);
        execute(fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [%a1, {}], [tile];", rank,
                            coordinates[rank]),
                0, rank);
        execute(fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group.L2::cache_hint [%a1, {}], "
                            "[tile], %d5;",
                            rank, coordinates[rank]),
                0, rank);
        execute(fmt::format("cp.async.bulk.prefetch.tensor.{}d.L2.global.tile [%a1, {}];", rank, coordinates[rank]), 0,
                rank);
    }
    for (const std::string_view operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
        execute(
            fmt::format("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%a1, {{0, 0}}], "
                        "[tile];",
                        operation));
    }
    // .cta_group comes before or after the state spaces (as compilers and libraries write it).
    for (const std::string_view modifiers : {"2d.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes",
                                             "2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1"}) {
        execute(fmt::format("cp.async.bulk.tensor.{} [tile], [%a1, {{0, 0}}], [done];", modifiers), 64);
    }
    for (const std::string_view form : {"prefetch.tensormap [%a1];", "prefetch.param.tensormap [p1];"}) execute(form);
    execute("fence.proxy.tensormap::generic.acquire.gpu [%a1], 128; fence.proxy.tensormap::generic.release.gpu;");

    const auto load = [](std::string_view modifiers) {
        return fmt::format("cp.async.bulk.tensor.{} [tile], [%a1, {{0, 0}}], [done];", modifiers);
    };
    refuse(load("2d.shared.global.mbarrier::complete_tx::bytes"), "two state spaces");
    refuse(load("6d.shared::cta.global.mbarrier::complete_tx::bytes"), "rank is missing");
    refuse(load("2d.shared::cta.global"), "completion mechanism");
    refuse(load("3d.shared::cta.global.mbarrier::complete_tx::bytes"), "2 coordinates");
    refuse(load("2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes"), "im2col");
    refuse(load("2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"), "gather4");
    refuse(load("2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"), "cta_group::2");
    refuse("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%a1, {0, 0}], [tile];", "scatter4");
    refuse("tensormap.replace.tile.global_address.global.b1024.b64 [%a1], %a0;", "not simulated");
}

TEST_CASE("bulk copies, groups and hints") {
    for (const std::string_view space : {"shared::cta", "shared::cluster"}) {
        execute(fmt::format("cp.async.bulk.{}.global.mbarrier::complete_tx::bytes [tile], [%a0], 64, [done];", space),
                64);
    }
    execute(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%a0], 64, [done], "
        "%d5;",
        64);
    execute(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%a0], 64, "
        "[done], %h5;",
        64);
    execute("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%b7], [tile+512], 64, [%b6];", 64);
    execute(
        "cp.async.bulk.global.shared::cta.bulk_group [%a0], [tile], 64; cp.async.bulk.commit_group; "
        "cp.async.bulk.wait_group.read 0;");
    execute("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%a0], [tile], 64, %d5;");
    execute(
        "cp.async.bulk.prefetch.L2.global [%a0], 64; cp.async.bulk.prefetch.L2.global.L2::cache_hint [%a0], 64, %d5;");
    for (const std::string_view type : {"add.noftz.f16", "add.noftz.bf16", "min.f16", "max.bf16", "add.f32", "add.f64",
                                        "add.u32", "min.s32", "inc.u32", "dec.u32", "and.b32", "or.b64", "add.u64"}) {
        execute(fmt::format("cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%a0], [tile], 64;", type));
    }
    execute(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%b7], [tile+512], 64, "
        "[%b6];",
        64);
    for (const std::string_view level : {"evict_first", "evict_last"}) {
        execute(fmt::format("createpolicy.fractional.L2::{}.b64 %d0, 1.0;", level));
    }
    for (const std::string_view form :
         {"cp.async.ca.shared.global [tile], [%a0], 4;", "cp.async.ca.shared::cta.global.L2::128B [tile], [%a0], 8;",
          "cp.async.cg.shared.global [tile], [%a0], 16;", "cp.async.cg.shared.global.L2::256B [tile], [%a0], 16, %b8;",
          "cp.async.cg.shared.global.L2::cache_hint [tile], [%a0], 16, %d5;",
          "cp.async.ca.shared.global [tile], [%a0], 4, %p0; cp.async.commit_group; cp.async.wait_group 0;"}) {
        execute(form);
    }
    refuse("cp.async.bulk.wait_group %b0;", "an integer is needed");
    refuse("cp.async.bulk.shared::cta.global [tile], [%a0], 64, [done];", "completion mechanism");
    refuse("cp.async.bulk.shared::cta.shared::cta.bulk_group [tile], [tile], 64;", "it copies from");
    refuse("cp.async.cg.shared.global [tile], [%a0], 8;", "the size is 16");
    refuse("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s8 [%a0], [tile], 64;", "type");
    refuse("cp.reduce.async.bulk.global.shared::cta.bulk_group.and.f32 [%a0], [tile], 64;", "does not exist");
}

TEST_CASE("fences and barriers") {
    for (const std::string_view form :
         {"fence.proxy.async;", "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;",
          "fence.proxy.async.global;", "fence.proxy.alias;", "fence.mbarrier_init.release.cluster;",
          "fence.acq_rel.cta;", "fence.acq_rel.cluster;", "fence.sc.cta;",
          "fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;",
          "membar.cta;", "membar.gl;", "membar.sys;", "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"}) {
        execute(form);
    }
    // The rest of the warp is at another place, so these come before the branch.
    const auto together = [](std::string_view form) {
        CAPTURE(form);
        TestKernel kernel(std::string(form), 0);
        CHECK(kernel.run({1, 1, 1}, {64, 1, 1}));
        for (const Finding& finding : kernel.findings()) FAIL_CHECK(to_string(finding));
    };
    for (const std::string_view form :
         {"bar.sync 1;", "bar.sync 2, 64;", "barrier.sync 3;", "barrier.cta.sync.aligned 4, 64;",
          "setp.lt.u32 %p0, %t, 32; @%p0 bar.arrive 5, 64; @!%p0 bar.sync 5, 64;",
          "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
          "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
          "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
          "barrier.cluster.arrive; barrier.cluster.wait;", "elect.sync %b0|%p0, -1; elect.sync _|%p1, -1;",
          "setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 256;"}) {
        together(form);
    }
    refuse("fence.proxy.async.shared;", "modifier .shared");
    refuse("fence.mbarrier_init.release.cta;", "release.cluster");
    refuse("fence.proxy.tensormap::generic.acquire [%a1], 128;", "scope is missing");
    refuse("bar.sync 16;", "0 to 15");
    refuse("bar.sync 1, 100;", "multiple of 32");
    refuse("bar.arrive 1;", "number of threads");
    refuse("elect.sync %p1, -1;", "a pair");
    for (const int count : {16, 20, 25, 264}) {
        refuse(fmt::format("setmaxnreg.inc.sync.aligned.u32 {};", count), "multiple of 8 from 24 to 256");
    }
    refuse("setmaxnreg.inc.u32 64;", ".sync.aligned");
    refuse("barrier.cluster.sync;", ".arrive or .wait");
    refuse("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [done];",
           "not simulated");
}

TEST_CASE("an instruction of one architecture is refused in a module for another") {
    Simulator simulator({.architecture = 100});
    const auto module = simulator.load(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() { wgmma.fence.sync.aligned; ret; }\n", "k.ptx");
    CHECK_THROWS_WITH_AS(simulator.check(module, "k"),
                         "k.ptx:4:14: wgmma.fence.sync.aligned: it exists for sm_90a alone, but the module's target is "
                         "sm_100a",
                         ptx::PtxError);
}

}  // namespace
}  // namespace block_attention::simulator
