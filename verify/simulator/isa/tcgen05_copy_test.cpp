#include <doctest/doctest.h>

#include <functional>

#include "verify/simulator/isa/tcgen05_test_support.h"
#include "verify/simulator/layout/matrix_descriptor.h"

/// tcgen05.cp and tcgen05.shift, whole columns compared.
namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kLanes = 128;
constexpr std::uint32_t kColumns = 32;
constexpr std::uint32_t kRowBytes = 16;  ///< of the source without a swizzle: its rows are 16 bytes, side by side
constexpr std::uint32_t kSecondChunk = 2048;

/// Tensor Memory after thread 0 has executed a form, word column * 128 + lane. Before, lane l holds l << 16 | c in
/// column c. Shared memory holds its word numbers; %d0 is the descriptor of 128 rows of 16 or 32 bytes.
std::vector<std::uint32_t> run_form(std::string_view form, std::uint64_t seed) {
    const MatrixDescriptor source{.start = 0x400, .leading = kSecondChunk, .stride = 8 * kRowBytes};
    TestKernel kernel(
        fmt::format(
            ".shared .align 1024 .b8 tile[4096];\n{}mov.u32 %b63, bar; mov.u32 %b10, tile; shl.b32 %b11, %t, 2;\n"
            "add.u32 %b10, %b10, %b11; mov.u32 %b12, %t;\n"
            "FILL: st.shared.u32 [%b10], %b12; add.u32 %b10, %b10, 512; add.u32 %b12, %b12, 128;\n"
            "setp.lt.u32 %p2, %b12, 1024; @%p2 bra FILL; fence.proxy.async.shared::cta; shl.b32 %b13, %t, 16;\n"
            "mov.u32 %b14, 0;\n"
            "PUT: or.b32 %b15, %b13, %b14; add.u32 %b16, %b1, %b14;\n"
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%b16], {{%b15}}; add.u32 %b14, %b14, 1;\n"
            "setp.lt.u32 %p2, %b14, {}; @%p2 bra PUT; tcgen05.wait::st.sync.aligned;\n"
            "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; mov.u64 %d0, {};\n"
            "@!%p0 bra AFTER; {}\n{}AFTER: {}tcgen05.ld.sync.aligned.32x32b.x32.b32 {}, [%b1];\n"
            "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %d2, %t, 4; add.s64 %d3, %a0, %d2;\n",
            allocate(kColumns), kColumns, encode_tcgen05_descriptor(source), form, kCommit, wait_for_bar(0),
            registers(kColumns)) +
            [] {
                std::string text;
                for (std::uint32_t c = 0; c < kColumns; ++c) {
                    text += fmt::format("st.global.u32 [%d3+{}], %r{};\n", c * kLanes * 4, c);
                }
                return text + free_columns(kColumns);
            }(),
        1, blackwell(seed));
    kernel.output(std::size_t{kLanes} * kColumns * 4);
    REQUIRE(kernel.run({1, 1, 1}, {kLanes, 1, 1}));
    require_no_findings(kernel);
    return kernel.read<std::uint32_t>(0, std::size_t{kLanes} * kColumns);
}

/// Compares with what `expected` says of each cell.
void check_cells(std::string_view form, const std::function<std::uint32_t(std::uint32_t, std::uint32_t)>& expected) {
    CAPTURE(form);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto words = run_form(form, seed);
        std::uint32_t wrong = 0;
        for (std::uint32_t c = 0; c < kColumns; ++c) {
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                wrong += words[c * kLanes + lane] == expected(lane, c) ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
    }
}

/// Columns 8 on of a lane hold the source's row that `row_of` gives for it, `words` words of it.
void check_copy(std::string_view shape, std::uint32_t words,
                const std::function<std::uint32_t(std::uint32_t)>& row_of) {
    check_cells(fmt::format("tcgen05.cp.cta_group::1.{} [%b0+8], %d0;", shape),
                [&](std::uint32_t lane, std::uint32_t c) {
                    if (c < 8 || c >= 8 + words) return lane << 16 | c;
                    const std::uint32_t word = c - 8;
                    return (row_of(lane) * kRowBytes + word / 4 * kSecondChunk) / 4 + word % 4;
                });
}

TEST_CASE("tcgen05.cp: what each lane receives") {
    const auto same = [](std::uint32_t lane) { return lane; };
    check_copy("128x256b", 8, same);
    check_copy("128x128b", 4, same);
    // Warps 0 and 2, and 1 and 3, or 0 and 1, and 2 and 3, have the same 32 of 64 rows; or all have the same 32.
    check_copy("64x128b.warpx2::02_13", 4, [](std::uint32_t lane) { return lane / 32 % 2 * 32 + lane % 32; });
    check_copy("64x128b.warpx2::01_23", 4, [](std::uint32_t lane) { return lane / 64 * 32 + lane % 32; });
    check_copy("32x128b.warpx4", 4, [](std::uint32_t lane) { return lane % 32; });
}

TEST_CASE("tcgen05.shift: 31 lanes move down by one, in 8 columns") {
    for (const std::uint32_t first : {0U, 64U}) {
        check_cells(fmt::format("tcgen05.shift.cta_group::1.down [%b0+{}];", first << 16 | 4),
                    [&](std::uint32_t lane, std::uint32_t c) {
                        const bool moved = c >= 4 && c < 12 && lane > first && lane < first + 32;
                        return (moved ? lane - 1 : lane) << 16 | c;
                    });
    }
}

TEST_CASE("tcgen05.shift and tcgen05.cp: places that there are not") {
    const auto finding_of = [](std::string_view form) {
        TestKernel kernel(fmt::format(".shared .align 1024 .b8 tile[4096];\n{}mov.u64 %d0, 0x4000404000010040;\n{}{}",
                                      allocate(kColumns), form, free_columns(kColumns)),
                          0, blackwell());
        kernel.run({1, 1, 1}, {32, 1, 1});
        const auto findings = kernel.findings();
        REQUIRE(!findings.empty());
        return to_string(findings.front());
    };
    CHECK(contains(finding_of("tcgen05.shift.cta_group::1.down [%b0+0x100000];"), "must be a multiple of 32"));
    CHECK(contains(finding_of("tcgen05.shift.cta_group::1.down [%b0+508];"), "has 512 columns"));
    CHECK(contains(finding_of("tcgen05.shift.cta_group::1.down [%b0+28];"), "columns 28..35"));
    CHECK(contains(finding_of("tcgen05.cp.cta_group::1.128x128b [%b0+0x200000], %d0;"), "use lane 0"));
    CHECK(contains(finding_of("tcgen05.cp.cta_group::1.128x128b [%b0+30], %d0;"), "columns 30..33"));
    CHECK(contains(finding_of("mov.u64 %d0, 0; tcgen05.cp.cta_group::1.128x128b [%b0], %d0;"), "bits 46-48"));
}

}  // namespace
}  // namespace block_attention::simulator
