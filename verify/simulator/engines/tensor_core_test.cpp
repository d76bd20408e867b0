#include "verify/simulator/engines/tensor_core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "verify/simulator/engines/tensor_core_test_support.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/layout/instruction_descriptor.h"

/// The fast version gives the bits of the plain one.
namespace block_attention::simulator {

namespace {

// The codes of tcgen05's instruction descriptor are these enumerations' values.
template <typename Code, typename Value>
constexpr bool agree(Code code, Value value) {
    return static_cast<unsigned>(code) == static_cast<unsigned>(value);
}
static_assert(agree(InstructionDescriptor::Accumulator::f16, AccumulatorType::f16));
static_assert(agree(InstructionDescriptor::Accumulator::f32, AccumulatorType::f32));
static_assert(agree(InstructionDescriptor::Multiplicand::f16, OperandType::f16));
static_assert(agree(InstructionDescriptor::Multiplicand::bf16, OperandType::bf16));

struct Types {
    OperandType operands;
    AccumulatorType accumulator;
};

constexpr Types kAllTypes[] = {{OperandType::f16, AccumulatorType::f32},
                               {OperandType::bf16, AccumulatorType::f32},
                               {OperandType::tf32, AccumulatorType::f32},
                               {OperandType::f16, AccumulatorType::f16}};

Tile ones(unsigned rows, unsigned columns) {
    Tile tile(rows, columns);
    for (unsigned m = 0; m < rows; ++m) {
        for (unsigned n = 0; n < columns; ++n) tile.at(m, n) = 0x3F800000;
    }
    return tile;
}

PackedRows packed_rows(OperandType type, unsigned count, unsigned depth) {
    const Operand operand(type, count, depth, true, false);
    PackedRows packed;
    packed.pack(operand.view());
    return packed;
}

PackedColumns packed_columns(OperandType type, unsigned count, unsigned depth) {
    const Operand operand(type, count, depth, true, false);
    PackedColumns packed;
    packed.pack(operand.view());
    return packed;
}

}  // namespace

TEST_CASE("The fast product has the plain one's bits for inputs of every kind") {
    for (const Types& types : kAllTypes) {
        for (unsigned kind = 0; kind < static_cast<unsigned>(Class::last); ++kind) {
            for (unsigned round = 0; round < 4; ++round) {
                CAPTURE(static_cast<unsigned>(types.operands));
                CAPTURE(static_cast<unsigned>(types.accumulator));
                CAPTURE(kind);
                CAPTURE(round);
                Source source(static_cast<Class>(kind), 100 * kind + round);
                Operand a(types.operands, 19, 48, round % 2 == 0, false);
                Operand b(types.operands, 24, 48, round / 2 == 0, false);
                fill(a, source, true);
                fill(b, source, false);
                CHECK(differences(a, b, {.type = types.accumulator}, source) == 0);
            }
        }
    }
}

TEST_CASE("The fast product has the plain one's bits for every shape") {
    for (const Types& types : kAllTypes) {
        for (const unsigned depth : {0U, 1U, 4U, 8U, 16U, 20U, 40U}) {
            for (const unsigned columns : {1U, 7U, 8U, 9U, 16U, 23U, 33U}) {
                CAPTURE(static_cast<unsigned>(types.operands));
                CAPTURE(depth);
                CAPTURE(columns);
                Source source(Class::normal, depth * 100 + columns);
                Operand a(types.operands, 1 + columns % 18, depth, true, false);
                Operand b(types.operands, columns, depth, false, false);
                fill(a, source, true);
                fill(b, source, false);
                CHECK(differences(a, b, {.type = types.accumulator}, source) == 0);
            }
        }
    }
}

TEST_CASE("Elements far below the largest of their row and their column count") {
    for (const OperandType type : {OperandType::bf16, OperandType::tf32}) {
        const Format format = format_of(type);
        const auto element = [&](int exponent) { return from_float(format, std::ldexp(1.25F, exponent)); };
        for (int small_a = 20; small_a < 80; ++small_a) {
            // The first products are 2^-small_a, the second ones 2^-30 to 2^-81.
            Operand a(type, 1, 2, true, false);
            Operand b(type, 52, 2, true, false);
            a.set(0, 0, element(-small_a));
            a.set(0, 1, element(0));
            for (unsigned n = 0; n < 52; ++n) {
                b.set(n, 0, element(0));
                b.set(n, 1, element(-30 - static_cast<int>(n)));
            }
            Source source(Class::zeros, 3);
            CHECK(differences(a, b, {.add_c = false}, source) == 0);
        }
    }
}

TEST_CASE("Products and C of every size") {
    for (const Types& types : kAllTypes) {
        const Format format = format_of(types.operands);
        const int bias = static_cast<int>(format.bias());
        std::mt19937 random(5);
        const auto element = [&](int exponent) {
            const auto fraction = static_cast<std::uint32_t>(random() % (1U << format.fraction_bits));
            return static_cast<std::uint32_t>(std::clamp(exponent, 0, 2 * bias)) << format.fraction_bits | fraction;
        };
        // From product to product, the exponent goes down or up by 1 from 0.
        for (const int sign : {-1, 1}) {
            Operand a(types.operands, 10, 3, true, false);
            Operand b(types.operands, static_cast<unsigned>(bias) + 5, 3, true, false);
            for (unsigned k = 0; k < 3; ++k) {
                for (unsigned m = 0; m < 10; ++m) a.set(m, k, element(bias + sign * static_cast<int>(m) * bias / 10));
                for (unsigned n = 0; n < b.view().count; ++n) b.set(n, k, element(bias + sign * static_cast<int>(n)));
            }
            for (const Class kind : {Class::zeros, Class::wide, Class::subnormal}) {
                Source source(kind, 2);
                CHECK(differences(a, b, {.type = types.accumulator}, source) == 0);
            }
        }
    }
}

TEST_CASE("The largest sums") {
    // Sixteen products of 1 + 1023 / 1024 with itself are 2096640 units of 2^-25 less than 64, which takes 32 bits.
    Operand a(OperandType::f16, 1, 16, true, false);
    Operand b(OperandType::f16, 1, 16, true, false);
    for (unsigned k = 0; k < 16; ++k) {
        a.set(0, k, 0x3FFF);
        b.set(0, k, 0x3FFF);
    }
    PackedRows packed_a;
    PackedColumns packed_b;
    packed_a.pack(a.view());
    packed_b.pack(b.view());
    for (int less = -200; less <= 200; ++less) {
        const double c = std::ldexp(2096640 - less, -25);
        Tile tile(1, 1);
        tile.at(0, 0) = std::bit_cast<std::uint32_t>(static_cast<float>(c));
        multiply(packed_a, packed_b, {}, tile.rows());
        // A float below 64 has 2^-18 as its unit, one above 2^-17.
        const double unit = less > 0 ? std::ldexp(1, -18) : std::ldexp(1, -17);
        const double sum = std::floor((64 - std::ldexp(less, -25)) / unit) * unit;
        CHECK(tile.at(0, 0) == std::bit_cast<std::uint32_t>(static_cast<float>(sum)));
    }
}

TEST_CASE("A sum of exactly -2^31 units is an infinite f16 and stays one") {
    // Sixteen products of -2^15 * (2 - 1 / 32)^2 and C = -2^15 * (2 - 1 / 64) make -2^21; E is 15. The next step has
    // the products without their sign.
    Operand a(OperandType::f16, 1, 32, true, false);
    Operand b(OperandType::f16, 1, 32, true, false);
    for (unsigned k = 0; k < 32; ++k) {
        a.set(0, k, to_half(std::ldexp(k < 16 ? -1.96875F : 1.96875F, 8)).bits);
        b.set(0, k, to_half(std::ldexp(1.96875F, 7)).bits);
    }
    PackedRows packed_a;
    PackedColumns packed_b;
    packed_a.pack(a.view());
    packed_b.pack(b.view());
    Tile tile(1, 1);
    tile.at(0, 0) = to_half(std::ldexp(-1.984375F, 15)).bits;
    multiply(packed_a, packed_b, {.type = AccumulatorType::f16}, tile.rows());
    CHECK(tile.at(0, 0) == 0xFC00);
}

TEST_CASE("The least exponents of an f16 accumulator") {
    // 2^-25, half the least f16, and another product of 2^-39 to 2^-48 that decides the rounding unless it is lost.
    for (const int sign : {-1, 1}) {
        Operand a(OperandType::f16, 2, 2, true, false);
        Operand b(OperandType::f16, 10, 2, true, false);
        const auto element = [](float value, int exponent) { return to_half(std::ldexp(value, exponent)).bits; };
        for (unsigned m = 0; m < 2; ++m) {
            a.set(m, 0, element(m == 0 ? 1.0F : 3.0F, -12));
            a.set(m, 1, element(static_cast<float>(sign), -24));
        }
        for (unsigned n = 0; n < 10; ++n) {
            b.set(n, 0, element(1.0F, -13));
            b.set(n, 1, element(1.0F, -15 - static_cast<int>(n)));
        }
        for (const Class kind : {Class::zeros, Class::subnormal}) {
            for (unsigned seed = 0; seed < 8; ++seed) {
                Source source(kind, seed);
                CHECK(differences(a, b, {.type = AccumulatorType::f16}, source) == 0);
            }
        }
    }
}

TEST_CASE("Packing again leaves nothing of what was packed before") {
    PackedRows packed_a;
    PackedColumns packed_b;
    const std::vector<std::uint16_t> ones_in_memory(64, to_half(1).bits);
    const auto pack = [&](unsigned depth) {
        const OperandView view{.data = reinterpret_cast<const std::byte*>(ones_in_memory.data()),
                               .count = 2,
                               .depth = depth,
                               .stride = 2 * depth,
                               .depth_stride = 2};
        packed_a.pack(view);
        packed_b.pack(view);
    };
    pack(32);
    pack(20);
    Tile tile(2, 2);
    multiply(packed_a, packed_b, {.add_c = false}, tile.rows());
    CHECK(tile.at(1, 1) == std::bit_cast<std::uint32_t>(20.0F));
}

TEST_CASE("Negation, scale-input-d and a product without C") {
    for (const Types& types : kAllTypes) {
        for (unsigned choice = 0; choice < 16; ++choice) {
            CAPTURE(choice);
            Source source(choice % 3 == 0 ? Class::root : Class::normal, choice);
            Operand a(types.operands, 16, 32, true, (choice & 1U) != 0);
            Operand b(types.operands, 8, 32, true, (choice & 2U) != 0);
            fill(a, source, true);
            fill(b, source, false);
            const Accumulation accumulation{.type = types.accumulator,
                                            .add_c = (choice & 4U) != 0,
                                            .scale_exponent = (choice & 8U) != 0 ? choice : 0};
            CHECK(differences(a, b, accumulation, source) == 0);
        }
    }
}

TEST_CASE("Sums of small integers are exact over many steps") {
    constexpr unsigned kDepth = 128;
    for (const Types& types : kAllTypes) {
        if (types.accumulator == AccumulatorType::f16) continue;
        std::mt19937 random(7);
        Operand a(types.operands, 64, kDepth, true, false);
        Operand b(types.operands, 72, kDepth, false, true);
        std::vector<int> a_values;
        std::vector<int> b_values;
        const auto fill_integers = [&](Operand& operand, std::vector<int>& values) {
            for (unsigned i = 0; i < operand.view().count; ++i) {
                for (unsigned k = 0; k < kDepth; ++k) {
                    values.push_back(static_cast<int>(random() % 33) - 16);
                    const auto value = static_cast<float>(values.back());
                    operand.set(i, k, from_float(format_of(types.operands), value));
                }
            }
        };
        fill_integers(a, a_values);
        fill_integers(b, b_values);
        PackedRows packed_a;
        PackedColumns packed_b;
        packed_a.pack(a.view());
        packed_b.pack(b.view());
        Tile tile = ones(64, 72);
        multiply(packed_a, packed_b, {}, tile.rows());
        unsigned wrong = 0;
        for (unsigned m = 0; m < 64; ++m) {
            for (unsigned n = 0; n < 72; ++n) {
                int sum = 1;
                for (unsigned k = 0; k < kDepth; ++k) sum -= a_values[m * kDepth + k] * b_values[n * kDepth + k];
                wrong += tile.at(m, n) != std::bit_cast<std::uint32_t>(static_cast<float>(sum)) ? 1 : 0;
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("Strides may be negative and larger than the elements need") {
    const std::uint16_t one = to_half(1).bits;
    const std::uint16_t two = to_half(2).bits;
    const std::uint16_t three = to_half(3).bits;
    // Row 0 is {1, 3}, row 1 is {2, 1}, read from the end with a hole between the elements.
    const std::uint16_t memory[] = {one, 0x7E00, two, 0x7E00, three, 0x7E00, one};
    const auto* bytes = reinterpret_cast<const std::byte*>(memory);
    PackedRows a;
    a.pack({.data = bytes + 12, .count = 2, .depth = 2, .stride = -8, .depth_stride = -4});
    PackedColumns b;
    b.pack({.data = bytes, .count = 1, .depth = 2, .stride = 0, .depth_stride = 4});
    Tile tile(2, 1);
    multiply(a, b, {.add_c = false}, tile.rows());
    CHECK(tile.at(0, 0) == std::bit_cast<std::uint32_t>(7.0F));
    CHECK(tile.at(1, 0) == std::bit_cast<std::uint32_t>(4.0F));
}

TEST_CASE("Rows without a pointer are left out") {
    const PackedRows a = packed_rows(OperandType::bf16, 20, 16);
    const PackedColumns b = packed_columns(OperandType::bf16, 8, 16);
    Tile tile(20, 8);
    tile.rows()[0] = nullptr;
    tile.rows()[17] = nullptr;
    multiply(a, b, {.add_c = false}, tile.rows());
    for (unsigned m = 0; m < 20; ++m) CHECK(tile.at(m, 3) == (m == 0 || m == 17 ? kUntouched : 0));
}

TEST_CASE("Factors that don't fit are refused") {
    using enum OperandType;
    const auto message = [](const PackedRows& a, const PackedColumns& b, AccumulatorType accumulator, unsigned rows) {
        Tile tile(rows, b.count());
        try {
            multiply(a, b, {.type = accumulator}, tile.rows());
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    constexpr auto kF32 = AccumulatorType::f32;
    CHECK(message(packed_rows(f16, 4, 16), packed_columns(f16, 8, 16), kF32, 4) == "no error");
    CHECK(message(packed_rows(f16, 4, 16), packed_columns(bf16, 8, 16), kF32, 4) ==
          "A is f16, B is bf16: both factors must have one type");
    CHECK(message(packed_rows(f16, 4, 16), packed_columns(f16, 8, 32), kF32, 4) ==
          "A has a depth of 16, B one of 32: they must be equal");
    CHECK(message(packed_rows(f16, 4, 16), packed_columns(f16, 8, 16), kF32, 5) ==
          "A has 4 rows, D has 5: they must be equal");
    CHECK(message(packed_rows(tf32, 4, 16), packed_columns(tf32, 8, 16), AccumulatorType::f16, 4) ==
          "A and B are tf32: an f16 accumulator needs f16, or use an f32 accumulator");
}

}  // namespace block_attention::simulator
