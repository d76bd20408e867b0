#include <doctest/doctest.h>

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cstring>

#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/tcgen05_test_support.h"
#include "verify/simulator/layout/instruction_descriptor.h"
#include "verify/simulator/layout/matrix_descriptor.h"

/// tcgen05.mma on small integers, whose products and sums are exact: whole Tensor Memory is compared with Eigen's.
namespace block_attention::simulator {
namespace {

using Multiplicand = InstructionDescriptor::Multiplicand;
using Accumulator = InstructionDescriptor::Accumulator;
using Matrix = Eigen::MatrixXi;

constexpr std::uint32_t kK = 16;
constexpr std::uint32_t kLanes = 128;
constexpr std::uint32_t kTileBytes = 40960;
constexpr std::uint32_t kTile = 0x400;  ///< address of the tile in shared memory, its first variable
constexpr std::uint32_t kColumnOfD = 64;
constexpr std::uint32_t kColumnOfA = 16;
constexpr std::uint32_t kColumns = 320;  ///< that are compared

struct Case {
    InstructionDescriptor shape;
    SwizzleMode swizzle_a = SwizzleMode::none;
    SwizzleMode swizzle_b = SwizzleMode::none;
    bool a_in_tensor_memory = false;
    std::uint32_t first_lane = 0;
    std::array<std::uint32_t, 4> disabled{};
    std::string_view mask = "";    ///< the operand, with a comma
    std::string_view add_d = "1";  ///< enable-input-d
    bool adds = true;              ///< what it means
    std::string_view scale = "";   ///< scale-input-d, with a comma
    int divisor = 1;               ///< what it means
    std::string_view modifiers = "";
    std::uint64_t seed = 0;
};

std::uint32_t span_of(SwizzleMode mode) {
    switch (mode) {
        case SwizzleMode::none:
            return 16;
        case SwizzleMode::b32:
            return 32;
        case SwizzleMode::b64:
            return 64;
        default:
            return 128;
    }
}

/// The swizzle as the fact sheet has it, bit by bit.
std::uint32_t swizzle_bits(SwizzleMode mode, std::uint32_t a) {
    switch (mode) {
        case SwizzleMode::b32:
            return a ^ (a >> 7 & 1) << 4;
        case SwizzleMode::b64:
            return a ^ (a >> 7 & 3) << 4;
        case SwizzleMode::b128:
            return a ^ (a >> 7 & 7) << 4;
        case SwizzleMode::b128_atom_32:
            return a ^ (a >> 7 & 3) << 5;
        default:
            return a;
    }
}

/// An operand's place: rows of K-major operands with a swizzle span 32 bytes or more, of which 16 k take 32.
struct Place {
    SwizzleMode swizzle;
    Major major;
    std::uint32_t start;
    std::uint32_t leading;
    std::uint32_t stride;

    [[nodiscard]] std::uint32_t address(std::uint32_t mn, std::uint32_t k) const {
        const std::uint32_t span = span_of(swizzle);
        std::uint32_t at = start;
        if (major == Major::k && swizzle == SwizzleMode::none) {
            at += mn / 8 * stride + mn % 8 * 16 + k / 8 * leading + k % 8 * 2;
        } else if (major == Major::k) {
            at += mn / 8 * stride + mn % 8 * span + 2 * k;
        } else if (swizzle == SwizzleMode::none) {
            at += mn / 8 * stride + k / 8 * leading + k % 8 * 16 + mn % 8 * 2;
        } else {
            at += mn / (span / 2) * leading + k / 8 * stride + k % 8 * span + mn % (span / 2) * 2;
        }
        return swizzle_bits(swizzle, at);
    }
    [[nodiscard]] std::uint64_t descriptor() const {
        constexpr std::array<std::uint64_t, 5> kCodes{0, 6, 4, 2, 1};
        return (start & 0x3FFFF) >> 4 | std::uint64_t{leading >> 4} << 16 | std::uint64_t{stride >> 4} << 32 |
               std::uint64_t{1} << 46 | kCodes.at(static_cast<std::size_t>(swizzle)) << 61;
    }
};

Place place_at(std::uint32_t start, SwizzleMode swizzle, Major major, std::uint32_t extent) {
    const std::uint32_t span = span_of(swizzle);
    if (swizzle == SwizzleMode::none) {
        return major == Major::k ? Place{swizzle, major, start, extent * 16, 128}
                                 : Place{swizzle, major, start, 128, 256};
    }
    if (major == Major::mn) return {swizzle, major, start, kK * span, 8 * span};
    return {swizzle, major, start, 16, 8 * span};
}

/// Where A lies, behind B. If the rows of both span 128 bytes along K, A is a further K step of B's rows.
std::uint32_t start_of_a(const Case& test) {
    const bool wide_a = test.shape.major_a == Major::k && span_of(test.swizzle_a) == 128;
    const bool wide_b = test.shape.major_b == Major::k && span_of(test.swizzle_b) == 128;
    return kTile + (wide_a && wide_b ? 32 : wide_b ? 32768 : 16384);
}

/// A small integer for each element, other ones for each salt.
Matrix integers(std::uint32_t rows, std::uint32_t columns, std::uint32_t salt) {
    Matrix matrix(rows, columns);
    for (std::uint32_t r = 0; r < rows; ++r) {
        for (std::uint32_t c = 0; c < columns; ++c) {
            matrix(r, c) = static_cast<int>((r * 31 + c * 17 + r * c * 5 + salt * 7) % 9) - 4;
        }
    }
    return matrix;
}

std::uint16_t encode(Multiplicand type, int value) {
    const auto number = static_cast<float>(value);
    return type == Multiplicand::f16 ? to_half(number).bits : to_bfloat16(number).bits;
}

std::uint32_t encode(Accumulator type, int value, int divisor = 1) {
    const float number = static_cast<float>(value) / static_cast<float>(divisor);
    return type == Accumulator::f32 ? std::bit_cast<std::uint32_t>(number) : to_half(number).bits;
}

std::uint32_t lane_of(const Case& test, std::uint32_t row) {
    return test.shape.m == 128 ? row : row / 16 * 32 + row % 16 + test.first_lane;
}

/// Buffers: 0 the shared memory, 1 the operands, 2 and 3 Tensor Memory before and after, word column * 128 + lane.
std::string kernel_text(const Case& test) {
    return fmt::format(
        ".shared .align 1024 .b8 tile[{0}];\n{1}mov.u32 %b63, bar; mov.u32 %b2, tile; shl.b32 %b3, %t, 2;\n"
        "FILL: cvt.u64.u32 %d2, %b3; add.s64 %d3, %a0, %d2; ld.global.u32 %b4, [%d3]; add.u32 %b5, %b2, %b3;\n"
        "st.shared.u32 [%b5], %b4; add.u32 %b3, %b3, 512; setp.lt.u32 %p2, %b3, {0}; @%p2 bra FILL;\n"
        "fence.proxy.async.shared::cta;\n"
        "mul.wide.u32 %d4, %t, 4; add.s64 %d5, %a2, %d4; mov.u32 %b6, 0;\n"
        "PUT: ld.global.u32 %b7, [%d5]; add.u32 %b8, %b1, %b6; tcgen05.st.sync.aligned.32x32b.x1.b32 [%b8], {{%b7}};\n"
        "add.s64 %d5, %d5, 512; add.u32 %b6, %b6, 1; setp.lt.u32 %p2, %b6, {2}; @%p2 bra PUT;\n"
        "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;\n"
        "tcgen05.fence::after_thread_sync; @!%p0 bra DONE;\n"
        "ld.global.u64 %d10, [%a1]; ld.global.u64 %d11, [%a1+8]; ld.global.u32 %b10, [%a1+16];\n"
        "ld.global.v4.u32 {{%b11, %b12, %b13, %b14}}, [%a1+32]; ld.global.u32 %b15, [%a1+20];\n"
        "add.u32 %b15, %b15, %b0; cvt.u32.u64 %b16, %d10; add.u32 %b16, %b16, %b0; setp.eq.u32 %p3, %t, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16{3} [%b15+{4}], {5}, %d11, %b10, {6}{7}{8};\n"
        "{9}DONE:\n{10}"
        "add.s64 %d5, %a3, %d4; mov.u32 %b6, 0;\n"
        "GET: add.u32 %b8, %b1, %b6; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%b7}}, [%b8];\n"
        "tcgen05.wait::ld.sync.aligned; st.global.u32 [%d5], %b7;\n"
        "add.s64 %d5, %d5, 512; add.u32 %b6, %b6, 1; setp.lt.u32 %p2, %b6, {2}; @%p2 bra GET;\n{11}",
        kTileBytes, allocate(512), kColumns, test.modifiers, kColumnOfD, test.a_in_tensor_memory ? "[%b16]" : "%d10",
        test.mask, test.add_d, test.scale, kCommit, wait_for_bar(0), free_columns(512));
}

void check_product(const Case& test) {
    const InstructionDescriptor& shape = test.shape;
    CAPTURE(encode_instruction_descriptor(shape));
    CAPTURE(name_of(test.swizzle_a));
    CAPTURE(name_of(test.swizzle_b));
    const Matrix a = integers(shape.m, kK, 1);
    const Matrix b = integers(kK, shape.n, 2);
    const Matrix c = integers(shape.m, shape.n, 3);
    const Matrix d = (shape.negate_a != shape.negate_b ? -1 : 1) * (a * b) * test.divisor +
                     (test.adds ? c : Matrix::Zero(shape.m, shape.n));

    std::vector<std::byte> tile(kTileBytes);
    const auto put = [&](const Place& place, std::uint32_t mn, std::uint32_t k, std::uint16_t bits) {
        std::memcpy(tile.data() + (place.address(mn, k) - kTile), &bits, sizeof bits);
    };
    const Place place_a = place_at(start_of_a(test), test.swizzle_a, shape.major_a, shape.m);
    const Place place_b = place_at(kTile, test.swizzle_b, shape.major_b, shape.n);
    for (std::uint32_t k = 0; k < kK; ++k) {
        for (std::uint32_t m = 0; m < shape.m && !test.a_in_tensor_memory; ++m) {
            put(place_a, m, k, encode(shape.a, a(m, k)));
        }
        for (std::uint32_t n = 0; n < shape.n; ++n) put(place_b, n, k, encode(shape.b, b(k, n)));
    }

    std::vector<std::uint32_t> before(kColumns * kLanes);
    for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<std::uint32_t>(i) | 0x41000000;
    for (std::uint32_t m = 0; m < shape.m; ++m) {
        const std::uint32_t lane = lane_of(test, m);
        for (std::uint32_t n = 0; n < shape.n; ++n) {
            before[(kColumnOfD + n) * kLanes + lane] = encode(shape.d, c(m, n));
        }
        for (std::uint32_t k = 0; k < kK && test.a_in_tensor_memory; k += 2) {
            before[(kColumnOfA + k / 2) * kLanes + lane] =
                encode(shape.a, a(m, k)) | static_cast<std::uint32_t>(encode(shape.a, a(m, k + 1))) << 16;
        }
    }
    std::vector<std::uint32_t> expected = before;
    for (std::uint32_t m = 0; m < shape.m; ++m) {
        const std::uint32_t lane = lane_of(test, m);
        if ((test.disabled[lane / 32] >> (lane % 32) & 1) != 0) continue;
        for (std::uint32_t n = 0; n < shape.n; ++n) {
            expected[(kColumnOfD + n) * kLanes + lane] = encode(shape.d, d(m, n), test.divisor);
        }
    }

    std::vector<std::uint64_t> operands(6);
    const std::uint64_t first_lane = std::uint64_t{test.first_lane} << 16;
    operands[0] = test.a_in_tensor_memory ? first_lane | kColumnOfA : place_a.descriptor();
    operands[1] = place_b.descriptor();
    operands[2] = encode_instruction_descriptor(shape) | first_lane << 32;
    std::memcpy(&operands[4], test.disabled.data(), sizeof test.disabled);

    TestKernel kernel(kernel_text(test), 4, blackwell(test.seed));
    kernel.input(tile).input(operands).input(before).output(before.size() * sizeof before[0]);
    REQUIRE(kernel.run({1, 1, 1}, {kLanes, 1, 1}));
    require_no_findings(kernel);
    auto after = kernel.read<std::uint32_t>(3, before.size());
    if (shape.d == Accumulator::f16) {
        // What the upper halves hold is not known.
        for (std::uint32_t n = 0; n < shape.n; ++n) {
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                after[(kColumnOfD + n) * kLanes + lane] &= 0xFFFF;
                expected[(kColumnOfD + n) * kLanes + lane] &= 0xFFFF;
            }
        }
    }
    CHECK(after == expected);
}

constexpr std::array kSwizzles{SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128};

TEST_CASE("tcgen05.mma, M 64 and 128, N from 8 to 256, every major and swizzle") {
    std::uint64_t seed = 0;
    for (const std::uint32_t m : {64U, 128U}) {
        for (const std::uint32_t n : {8U, 16U, 72U, 256U}) {
            for (const Major major_a : {Major::k, Major::mn}) {
                for (const Major major_b : {Major::k, Major::mn}) {
                    for (const SwizzleMode swizzle : kSwizzles) {
                        // The operands change places among the swizzles, so that each meets another one.
                        const SwizzleMode other = kSwizzles.at((static_cast<std::size_t>(swizzle) + seed / 4) % 4);
                        check_product({.shape = {.m = m, .n = n, .major_a = major_a, .major_b = major_b},
                                       .swizzle_a = swizzle,
                                       .swizzle_b = other,
                                       .seed = seed++});
                    }
                }
            }
        }
    }
}

TEST_CASE("tcgen05.mma with the swizzle of 32-byte atoms, K-major") {
    check_product(
        {.shape = {.m = 128, .n = 64}, .swizzle_a = SwizzleMode::b128_atom_32, .swizzle_b = SwizzleMode::b128_atom_32});
}

TEST_CASE("tcgen05.mma with every N") {
    for (std::uint32_t n = 8; n <= 256; n += 8) {
        check_product({.shape = {.m = n % 16 == 0 ? 128U : 64U, .n = n}, .seed = n});
    }
}

TEST_CASE("tcgen05.mma with A in Tensor Memory") {
    for (const std::uint32_t m : {64U, 128U}) {
        for (const Multiplicand type : {Multiplicand::f16, Multiplicand::bf16}) {
            check_product({.shape = {.m = m, .n = 96, .a = type, .b = type, .major_b = Major::mn},
                           .swizzle_b = SwizzleMode::b128,
                           .a_in_tensor_memory = true,
                           .seed = m});
        }
    }
}

TEST_CASE("tcgen05.mma, M 64, in the upper lanes of each warp's 32") {
    check_product({.shape = {.m = 64, .n = 32}, .first_lane = 16});
    check_product({.shape = {.m = 64, .n = 32}, .a_in_tensor_memory = true, .first_lane = 16});
}

TEST_CASE("tcgen05.mma leaves disabled lanes alone") {
    constexpr std::string_view kMask = "{%b11, %b12, %b13, %b14}, ";
    check_product({.shape = {.m = 128, .n = 16}, .disabled = {0x80000001, 0, 0xFFFF, 0xF0F0F0F0}, .mask = kMask});
    check_product({.shape = {.m = 64, .n = 16}, .disabled = {0x2, 0x00010000, ~0U, 0}, .mask = kMask});
    check_product({.shape = {.m = 128, .n = 16}, .a_in_tensor_memory = true, .disabled = {5, 6, 7, 8}, .mask = kMask});
}

TEST_CASE("tcgen05.mma: enable-input-d as a predicate, a negated one or an immediate") {
    const InstructionDescriptor shape{.m = 128, .n = 16};
    check_product({.shape = shape, .add_d = "%p3", .adds = true});
    check_product({.shape = shape, .add_d = "!%p3", .adds = false});
    check_product({.shape = shape, .add_d = "0", .adds = false});
    check_product({.shape = shape, .add_d = "1", .adds = true});
}

TEST_CASE("tcgen05.mma: scale-input-d, negation, f16 accumulators, bf16") {
    check_product({.shape = {.m = 128, .n = 16}, .scale = ", 0"});
    check_product({.shape = {.m = 128, .n = 16}, .scale = ", 3", .divisor = 8});
    check_product({.shape = {.m = 64, .n = 16}, .scale = ", 15", .divisor = 32768});
    check_product({.shape = {.m = 64, .n = 16, .negate_a = true}});
    check_product({.shape = {.m = 64, .n = 16, .negate_b = true}});
    check_product({.shape = {.m = 64, .n = 16, .negate_a = true, .negate_b = true}});
    for (const std::uint32_t m : {64U, 128U}) {
        check_product({.shape = {.m = m, .n = 48, .d = Accumulator::f16}});
        check_product({.shape = {.m = m, .n = 48, .a = Multiplicand::bf16, .b = Multiplicand::bf16}});
    }
}

TEST_CASE("tcgen05.mma: how long A may be kept changes nothing") {
    for (const std::string_view usage : {"fill", "use", "lastuse", "discard"}) {
        const std::string modifiers = fmt::format(".collector::a::{}", usage);
        check_product({.shape = {.m = 128, .n = 16}, .modifiers = modifiers});
    }
}

}  // namespace
}  // namespace block_attention::simulator
