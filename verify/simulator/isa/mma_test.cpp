// mma.sync, from PTX: where the operands' elements are in the registers, by exact products against Eigen's, and the
// bits of products against the plain model.
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <bit>
#include <cstdint>
#include <random>

#include "verify/simulator/engines/tensor_core_plain.h"
#include "verify/simulator/test_kernel.h"

namespace block_attention::simulator {
namespace {

using Matrix = Eigen::Matrix<std::uint32_t, Eigen::Dynamic, Eigen::Dynamic>;
using Words = std::vector<std::uint32_t>;

struct MmaForm {
    std::string_view shape;
    unsigned depth;
    std::string_view type;
    OperandType operands;
    AccumulatorType accumulator;

    bool is_tf32() const { return operands == OperandType::tf32; }
    bool is_f16() const { return accumulator == AccumulatorType::f16; }
    unsigned a_registers() const { return is_tf32() ? depth / 2 : depth / 4; }
    unsigned b_registers() const { return a_registers() / 2; }
    unsigned c_registers() const { return is_f16() ? 2 : 4; }
};

constexpr MmaForm kForms[] = {
    {"m16n8k16", 16, "f16", OperandType::f16, AccumulatorType::f32},
    {"m16n8k8", 8, "f16", OperandType::f16, AccumulatorType::f32},
    {"m16n8k16", 16, "f16", OperandType::f16, AccumulatorType::f16},
    {"m16n8k8", 8, "f16", OperandType::f16, AccumulatorType::f16},
    {"m16n8k16", 16, "bf16", OperandType::bf16, AccumulatorType::f32},
    {"m16n8k8", 8, "bf16", OperandType::bf16, AccumulatorType::f32},
    {"m16n8k8", 8, "tf32", OperandType::tf32, AccumulatorType::f32},
    {"m16n8k4", 4, "tf32", OperandType::tf32, AccumulatorType::f32},
};

std::string list_of(unsigned first, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%b{}", i == 0 ? "" : ", ", first + i);
    return text;
}

/// D, A, B, C in %b16, %b0, %b8 and %b12.
std::string instruction_of(const MmaForm& form) {
    const std::string_view accumulator = form.is_f16() ? "f16" : "f32";
    return fmt::format("mma.sync.aligned.{}.row.col.{}.{}.{}.{} {{{}}}, {{{}}}, {{{}}}, {{{}}};", form.shape,
                       accumulator, form.type, form.type, accumulator, list_of(16, form.c_registers()),
                       list_of(0, form.a_registers()), list_of(8, form.b_registers()), list_of(12, form.c_registers()));
}

std::string run_of(const MmaForm& form) {
    std::string body =
        "mul.wide.u32 %d0, %t, 64; add.s64 %d1, %a0, %d0; mul.wide.u32 %d2, %t, 16; add.s64 %d2, %a1, %d2;";
    for (unsigned i = 0; i < 16; ++i) body += fmt::format("ld.global.b32 %b{}, [%d1+{}];", i, 4 * i);
    body += instruction_of(form);
    for (unsigned i = 0; i < form.c_registers(); ++i) {
        body += fmt::format("st.global.b32 [%d2+{}], %b{};", 4 * i, 16 + i);
    }
    return body;
}

/// What a warp holds: 16 words a thread, A from word 0, B from word 8, C from word 12.
class WarpRegisters {
  public:
    explicit WarpRegisters(const MmaForm& form) : form_(form), words_(512) {}

    /// Bits of A (16 x depth), B (depth x 8) and C (16 x 8) into the registers (PTX ISA 9.7.14.5.7 and 8).
    void fill(const Matrix& a, const Matrix& b, const Matrix& c) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned group = lane / 4;
            const unsigned in_group = lane % 4;
            if (form_.is_tf32()) {
                for (unsigned i = 0; i < form_.a_registers(); ++i) {
                    word(lane, i) = a(group + (i % 2 == 0 ? 0 : 8), in_group + (i < 2 ? 0 : 4));
                }
                for (unsigned i = 0; i < form_.b_registers(); ++i) word(lane, 8 + i) = b(in_group + 4 * i, group);
            } else {
                for (unsigned i = 0; i < 2 * form_.a_registers(); ++i) {
                    const bool is_upper = i < 2 || (i >= 4 && i < 6);
                    put_half(lane, 0, i, a(group + (is_upper ? 0 : 8), 2 * in_group + i % 2 + (i < 4 ? 0 : 8)));
                }
                for (unsigned i = 0; i < 2 * form_.b_registers(); ++i) {
                    put_half(lane, 8, i, b(2 * in_group + i % 2 + (i < 2 ? 0 : 8), group));
                }
            }
            for (unsigned i = 0; i < 4; ++i) {
                const std::uint32_t value = c(group + (i < 2 ? 0 : 8), 2 * in_group + i % 2);
                if (form_.is_f16()) {
                    put_half(lane, 12, i, value);
                } else {
                    word(lane, 12 + i) = value;
                }
            }
        }
    }

    const Words& words() const { return words_; }

  private:
    std::uint32_t& word(unsigned lane, unsigned i) { return words_[16 * lane + i]; }
    void put_half(unsigned lane, unsigned first, unsigned i, std::uint32_t value) {
        word(lane, first + i / 2) |= value << (16 * (i % 2));
    }

    const MmaForm& form_;
    Words words_;
};

/// D as bits, from what the threads stored.
Matrix result_of(const MmaForm& form, const Words& stored) {
    Matrix d(16, 8);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t value =
                form.is_f16() ? stored[4 * lane + i / 2] >> (16 * (i % 2)) & 0xFFFF : stored[4 * lane + i];
            d(lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2) = value;
        }
    }
    return d;
}

Matrix multiply_on_simulator(const MmaForm& form, const Matrix& a, const Matrix& b, const Matrix& c) {
    WarpRegisters registers(form);
    registers.fill(a, b, c);
    TestKernel kernel(run_of(form), 2);
    kernel.input(registers.words()).output(512);
    REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
    REQUIRE(kernel.findings().empty());
    return result_of(form, kernel.read<std::uint32_t>(1, 128));
}

std::uint32_t bits_of(OperandType type, float value) {
    switch (type) {
        case OperandType::f16:
            return std::bit_cast<std::uint16_t>(Eigen::half(value));
        case OperandType::bf16:
            return std::bit_cast<std::uint16_t>(Eigen::bfloat16(value));
        case OperandType::tf32:
            break;
    }
    return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t bits_of(AccumulatorType type, float value) {
    return type == AccumulatorType::f32 ? std::bit_cast<std::uint32_t>(value) : bits_of(OperandType::f16, value);
}

TEST_CASE("mma.sync: small integers have Eigen's product, for every form") {
    std::mt19937 random(11);
    const auto integers = [&](Eigen::Index rows, Eigen::Index columns) {
        return Eigen::MatrixXi(
            Eigen::MatrixXi::NullaryExpr(rows, columns, [&] { return static_cast<int>(random() % 17) - 8; }));
    };
    for (const auto& form : kForms) {
        INFO(instruction_of(form));
        const Eigen::MatrixXi a = integers(16, form.depth);
        const Eigen::MatrixXi b = integers(form.depth, 8);
        const Eigen::MatrixXi c = integers(16, 8);
        const Eigen::MatrixXi d = a * b + c;
        const auto operand = [&](int x) { return bits_of(form.operands, static_cast<float>(x)); };
        const auto accumulator = [&](int x) { return bits_of(form.accumulator, static_cast<float>(x)); };
        const Matrix result =
            multiply_on_simulator(form, a.unaryExpr(operand), b.unaryExpr(operand), c.unaryExpr(accumulator));
        CHECK(result == Matrix(d.unaryExpr(accumulator)));
    }
}

TEST_CASE("mma.sync: the bits of random numbers are those of the model, for every form") {
    std::mt19937 random(12);
    std::normal_distribution<float> normal;
    const auto operands = [&](const MmaForm& form, unsigned rows, unsigned columns) {
        return Matrix(Matrix::NullaryExpr(rows, columns, [&] { return bits_of(form.operands, normal(random)); }));
    };
    for (const auto& form : kForms) {
        INFO(instruction_of(form));
        const Matrix a = operands(form, 16, form.depth);
        const Matrix b = operands(form, form.depth, 8);
        const Matrix c = Matrix::NullaryExpr(16, 8, [&] { return bits_of(form.accumulator, normal(random)); });
        const Matrix d = multiply_on_simulator(form, a, b, c);
        for (unsigned m = 0; m < 16; ++m) {
            for (unsigned n = 0; n < 8; ++n) {
                Words row;
                Words column;
                for (unsigned k = 0; k < form.depth; ++k) {
                    row.push_back(a(m, k));
                    column.push_back(b(k, n));
                }
                REQUIRE(d(m, n) == tensor_core_step(form.operands, form.accumulator, row, column, c(m, n)));
            }
        }
    }
}

TEST_CASE("mma.sync: modifiers in another order, D in place of C, sinks and immediates") {
    // A is zero but for its first column, B is the same in every row.
    const std::string fill =
        "mov.b32 %b0, 0x3C00; mov.b32 %b1, 0x4000; mov.b32 %b2, 0; mov.b32 %b3, 0;"
        "rem.u32 %b20, %t, 4; setp.ne.u32 %p0, %b20, 0; @%p0 mov.b32 %b0, 0; @%p0 mov.b32 %b1, 0;"
        "mov.b32 %b8, 0x42004200; mov.b32 %b9, 0x42004200; mov.b32 %b12, 0x3F800000; mov.b32 %b13, %b12;"
        "mov.b32 %b14, 0; mov.b32 %b15, 0;";
    const std::string store = "mul.wide.u32 %d0, %t, 8; add.s64 %d1, %a0, %d0; st.global.v2.b32 [%d1], {%b13, %b14};";
    for (const std::string instruction :
         {"mma.aligned.m16n8k16.f32.f16.f16.f32.sync.row.col {_, %b13, %b14, %b15}, {%b0, %b1, %b2, %b3}, {%b8, %b9}, "
          "{%b12, %b13, %b14, %b15};",
          "mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32 {%b12, %b13, %b14, %b15}, {%b0, %b1, 0, 0}, {%b8, %b9}, "
          "{0f00000000, 0f3F800000, 0f00000000, %b15};"}) {
        INFO(instruction);
        TestKernel kernel(fmt::format("{}{}{}", fill, instruction, store), 1);
        kernel.output(256);
        REQUIRE(kernel.run({1, 1, 1}, {32, 1, 1}));
        CHECK(kernel.findings().empty());
        const auto d = kernel.read<float>(0, 64);
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK(d[2 * lane] == 4);
            CHECK(d[2 * lane + 1] == 6);
        }
    }
}

}  // namespace
}  // namespace block_attention::simulator
