#include <doctest/doctest.h>

#include <array>

#include "verify/simulator/isa/tcgen05_test_support.h"
#include "verify/simulator/layout/tensor_memory.h"

/// tcgen05.ld and tcgen05.st move what they should, whole Tensor Memory compared. The layout of each shape is stated
/// here once more, as the fact sheets of several projects have it.
namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kLanes = 128;
constexpr std::uint32_t kColumns = 512;
constexpr std::uint32_t kBlock = 128;  ///< columns that one .32x32b.x128 moves
constexpr std::uint32_t kThreads = 128;

struct Shape {
    std::string_view name;
    std::uint32_t registers = 1;  ///< of a repetition
    std::uint32_t rows = 32;
};

constexpr std::array kShapes{Shape{"32x32b", 1, 32}, Shape{"16x64b", 1, 16}, Shape{"16x128b", 2, 16},
                             Shape{"16x256b", 4, 16}, Shape{"16x32bx2", 1, 16}};

/// Row and column of a lane's register, from the address on.
std::array<std::uint32_t, 2> place(const Shape& shape, std::uint32_t l, std::uint32_t i, std::uint32_t split) {
    if (shape.name == "32x32b") return {l, i};
    if (shape.name == "16x64b") return {l / 4 + 8 * (l & 1), (l >> 1 & 1) + 2 * i};
    if (shape.name == "16x128b") return {l / 4 + 8 * (i & 1), (l & 3) + (i >> 1) * 4};
    if (shape.name == "16x256b") return {l / 4 + 8 * (i >> 1 & 1), (l & 3) * 2 + (i & 1) + (i >> 2) * 8};
    return {l & 15, i + (l < 16 ? 0 : split)};
}

/// Every lane writes its cells: those of column c get tid << 16 | c.
std::string fill() {
    std::string text = "shl.b32 %b2, %t, 16;\n";
    for (std::uint32_t c = 0; c < kColumns; c += kBlock) {
        for (std::uint32_t i = 0; i < kBlock; ++i) text += fmt::format("or.b32 %r{}, %b2, {};\n", i, c + i);
        text += fmt::format("tcgen05.st.sync.aligned.32x32b.x128.b32 [%b1+{}], {};\n", c, registers(kBlock));
    }
    return text + "tcgen05.wait::st.sync.aligned;\n";
}

/// Stores `count` registers of every thread: register i of thread t in word (first + i) * 128 + t of buffer 0.
std::string store_registers(std::uint32_t count, std::uint32_t first) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i) {
        text += fmt::format("st.global.u32 [%d1+{}], %r{};\n", (first + i) * kThreads * 4, i);
    }
    return text;
}

constexpr std::string_view kOutputAddress = "mul.wide.u32 %d0, %t, 4; add.s64 %d1, %a0, %d0;\n";

struct Access {
    Shape shape;
    std::uint32_t repeat = 1;
    bool packed = false;
    bool upper = false;       ///< from the upper 16 lanes on
    std::int32_t split = 0;   ///< of .16x32bx2
    std::uint32_t count = 0;  ///< registers

    [[nodiscard]] std::string modifiers(std::string_view packing) const {
        return fmt::format("sync.aligned.{}.x{}{}.b32", shape.name, repeat, packed ? packing : "");
    }
    [[nodiscard]] std::string address(std::uint32_t column) const {
        return fmt::format("[%b1+{}]", column + (upper ? 16U << 16 : 0U));
    }
    [[nodiscard]] std::string split_operand() const {
        return shape.name == "16x32bx2" ? fmt::format(", {}", split) : "";
    }
    /// Lane and column of the cell that a register of a thread means; of the first of two if packed.
    [[nodiscard]] std::array<std::uint32_t, 2> cell(std::uint32_t thread, std::uint32_t index) const {
        const std::uint32_t scale = packed ? 2 : 1;
        const auto [row, column] = place(shape, thread % 32, index, 0);
        const std::uint32_t half =
            shape.name == "16x32bx2" && thread % 32 >= 16 ? static_cast<std::uint32_t>(split) : 0;
        return {thread / 32 * 32 + (upper ? 16 : 0) + row, scale * column + half};
    }
};

/// Every shape and width, packed or not, in both halves of the warp's lanes.
std::vector<Access> all_accesses() {
    std::vector<Access> accesses;
    for (const Shape& shape : kShapes) {
        for (std::uint32_t repeat = 1; repeat * shape.registers <= 128; repeat *= 2) {
            for (const bool packed : {false, true}) {
                Access access{shape, repeat, packed, false, 0, repeat * shape.registers};
                // The halves of .16x32bx2 lie side by side.
                access.split = static_cast<std::int32_t>(repeat * (packed ? 2 : 1));
                accesses.push_back(access);
                access.upper = true;
                if (shape.rows == 16) accesses.push_back(access);
            }
        }
    }
    return accesses;
}

TEST_CASE("tcgen05.ld reads every shape and width") {
    for (const Access& access : all_accesses()) {
        const bool reaches_past_half = access.count * 32 * (access.packed ? 2 : 1) / access.shape.rows > 256;
        const std::uint32_t column = reaches_past_half ? 0 : 37;
        CAPTURE(access.modifiers(".pack::16b"));
        TestKernel kernel(fmt::format("{}{}{}tcgen05.ld.{} {}, {}{};\ntcgen05.wait::ld.sync.aligned;\n{}{}",
                                      allocate(kColumns), fill(), kOutputAddress, access.modifiers(".pack::16b"),
                                      registers(access.count), access.address(column), access.split_operand(),
                                      store_registers(access.count, 0), free_columns(kColumns)),
                          1, blackwell(access.count));
        kernel.output(access.count * kThreads * 4);
        REQUIRE(kernel.run({1, 1, 1}, {kThreads, 1, 1}));
        require_no_findings(kernel);
        const auto words = kernel.read<std::uint32_t>(0, access.count * kThreads);
        std::uint32_t wrong = 0;
        for (std::uint32_t i = 0; i < access.count; ++i) {
            for (std::uint32_t t = 0; t < kThreads; ++t) {
                const auto [lane, offset] = access.cell(t, i);
                const std::uint32_t c = column + offset;
                const std::uint32_t expected = access.packed ? c | (c + 1) << 16 : lane << 16 | c;
                wrong += words[i * kThreads + t] == expected ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("tcgen05.st writes every shape and width, and nothing else") {
    std::string read_all;
    for (std::uint32_t c = 0; c < kColumns; c += kBlock) {
        read_all +=
            fmt::format("tcgen05.ld.sync.aligned.32x32b.x128.b32 {}, [%b1+{}];\ntcgen05.wait::ld.sync.aligned;\n{}",
                        registers(kBlock), c, store_registers(kBlock, c));
    }
    for (const Access& access : all_accesses()) {
        const bool reaches_past_half = access.count * 32 * (access.packed ? 2 : 1) / access.shape.rows > 256;
        const std::uint32_t column = reaches_past_half ? 0 : 101;
        CAPTURE(access.modifiers(".unpack::16b"));
        std::string values;  // register i of thread t: 0x8000 | i above, 0x8000 | t below
        for (std::uint32_t i = 0; i < access.count; ++i) {
            values += fmt::format("or.b32 %r{}, %t, {};\n", i, 0x80008000 | i << 16);
        }
        TestKernel kernel(
            fmt::format("{}{}{}{}tcgen05.st.{} {}{}, {};\ntcgen05.wait::st.sync.aligned;\n{}{}", allocate(kColumns),
                        fill(), kOutputAddress, values, access.modifiers(".unpack::16b"), access.address(column),
                        access.split_operand(), registers(access.count), read_all, free_columns(kColumns)),
            1, blackwell(access.count));
        kernel.output(kLanes * kColumns * 4);
        REQUIRE(kernel.run({1, 1, 1}, {kThreads, 1, 1}));
        require_no_findings(kernel);
        auto words = kernel.read<std::uint32_t>(0, kLanes * kColumns);
        std::vector<std::uint32_t> expected(kLanes * kColumns);
        for (std::uint32_t c = 0; c < kColumns; ++c) {
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) expected[c * kLanes + lane] = lane << 16 | c;
        }
        for (std::uint32_t i = 0; i < access.count; ++i) {
            for (std::uint32_t t = 0; t < kThreads; ++t) {
                const auto [lane, offset] = access.cell(t, i);
                const std::size_t cell = std::size_t{column + offset} * kLanes + lane;
                expected[cell] = 0x80008000 | i << 16 | t;
                if (!access.packed) continue;
                // What becomes of the upper halves is not known.
                expected[cell] &= 0xFFFF;
                expected[cell + kLanes] = 0x8000 | i;
                words[cell] &= 0xFFFF;
                words[cell + kLanes] &= 0xFFFF;
            }
        }
        CHECK(words == expected);
    }
}

TEST_CASE("the halves of .16x32bx2 may lie anywhere, also before the address") {
    for (const std::int32_t split : {-32, 8, 200}) {
        TestKernel kernel(fmt::format("{}{}{}tcgen05.ld.sync.aligned.16x32bx2.x8.b32 {}, [%b1+64], {};\n"
                                      "tcgen05.wait::ld.sync.aligned;\n{}{}",
                                      allocate(kColumns), fill(), kOutputAddress, registers(8), split,
                                      store_registers(8, 0), free_columns(kColumns)),
                          1, blackwell());
        kernel.output(8 * kThreads * 4);
        REQUIRE(kernel.run({1, 1, 1}, {kThreads, 1, 1}));
        require_no_findings(kernel);
        const auto words = kernel.read<std::uint32_t>(0, 8 * kThreads);
        for (std::uint32_t t = 0; t < kThreads; ++t) {
            const auto second = static_cast<std::uint32_t>(t % 32 >= 16 ? split : 0);
            CHECK(words[3 * kThreads + t] == ((t / 32 * 32 + t % 16) << 16 | (64 + 3 + second)));
        }
    }
}

}  // namespace
}  // namespace block_attention::simulator
