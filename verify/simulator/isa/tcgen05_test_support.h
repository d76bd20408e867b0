#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/test_kernel.h"

/// Pieces of PTX for tests of tcgen05, and what to do with a kernel that has run.
namespace block_attention::simulator {

inline Options blackwell(std::uint64_t seed = 0) { return {.architecture = 100, .seed = seed}; }

/// Warp 0 allocates the columns and thread 0 makes `bar`, an mbarrier object for one arrival. Then %b0 is the address
/// of the columns, %b1 that of the warp's own 32 lanes of them, and %p0 is true in thread 0, %p1 in warp 0.
inline std::string allocate(std::uint32_t columns) {
    return fmt::format(
        ".reg .b32 %r<129>; .shared .align 8 .b64 bar; .shared .align 4 .b32 slot;\n"
        "setp.eq.u32 %p0, %t, 0; setp.lt.u32 %p1, %t, 32; @%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
        "fence.mbarrier_init.release.cluster;\n"
        "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {};\n"
        "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
        "ld.shared.u32 %b0, [slot]; shr.u32 %b1, %t, 5; and.b32 %b1, %b1, 3; shl.b32 %b1, %b1, 21;\n"
        "add.u32 %b1, %b0, %b1;\n",
        columns);
}

/// Everybody meets, and warp 0 frees the columns.
inline std::string free_columns(std::uint32_t columns) {
    return fmt::format(
        "\ntcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
        "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b0, {};\n",
        columns);
}

constexpr std::string_view kCommit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%b63];\n";

/// Everybody waits for the phase of that parity of `bar`.
inline std::string wait_for_bar(unsigned parity) {
    return fmt::format(
        "B{0}: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], {0}; @!%p15 bra B{0};\n"
        "tcgen05.fence::after_thread_sync;\n",
        parity);
}

/// "{%r0, %r1, ...}".
inline std::string registers(std::uint32_t count, std::uint32_t first = 0) {
    std::string text = "{";
    for (std::uint32_t i = 0; i < count; ++i) text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
    return text + "}";
}

inline void require_no_findings(TestKernel& kernel) {
    for (const Finding& finding : kernel.findings()) FAIL(to_string(finding));
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace block_attention::simulator
