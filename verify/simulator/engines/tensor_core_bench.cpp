/// How fast tensor-core products are computed: G multiply-adds a second of one core, packing included.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/isa/half.h"

namespace {

using namespace block_attention::simulator;

enum class Data : std::uint8_t {
    normal,   // normal distribution
    softmax,  // A like the probabilities of a softmax, with some zeros; B from a normal distribution
    bits,     // any finite numbers
    poison,   // B is NaN
};

struct Shape {
    const char* instruction;
    unsigned rows;
    unsigned columns;
    unsigned depth;
    OperandType operands;
    AccumulatorType accumulator;
    Data data;
    unsigned uses_of_columns = 1;  // Products that the columns are packed for once.
};

std::uint32_t to_element(OperandType type, float value) {
    if (type == OperandType::f16) return to_half(value).bits;
    if (type == OperandType::bf16) return to_bfloat16(value).bits;
    return std::bit_cast<std::uint32_t>(value);
}

std::vector<std::byte> random_elements(OperandType type, std::size_t count, Data data, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    const std::uint32_t exponents = type == OperandType::f16 ? 0x7C00 : type == OperandType::bf16 ? 0x7F80 : 0x7F800000;
    const auto next = [&]() -> std::uint32_t {
        const float x = normal(generator);
        if (data == Data::poison) return 0x7FFD7FFD;
        if (data == Data::normal) return to_element(type, x);
        const auto bits = static_cast<std::uint32_t>(generator());
        if (data == Data::softmax) return to_element(type, bits % 8 == 0 ? 0.0F : std::exp(3 * x - 8));
        return (bits & exponents) == exponents ? 0 : bits;
    };
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t element = next();
        for (unsigned byte = 0; byte < (type == OperandType::tf32 ? 4U : 2U); ++byte, element >>= 8) {
            bytes.push_back(static_cast<std::byte>(element & 0xFF));
        }
    }
    return bytes;
}

double measure(const Shape& shape) {
    const std::ptrdiff_t size = shape.operands == OperandType::tf32 ? 4 : 2;
    const Data data_of_a = shape.data == Data::poison ? Data::normal : shape.data;
    const Data data_of_b = shape.data == Data::softmax ? Data::normal : shape.data;
    const auto a_bytes = random_elements(shape.operands, std::size_t{shape.rows} * shape.depth, data_of_a, 1);
    const auto b_bytes = random_elements(shape.operands, std::size_t{shape.columns} * shape.depth, data_of_b, 2);
    const auto view = [&](const std::vector<std::byte>& bytes, unsigned count) {
        return OperandView{.data = bytes.data(),
                           .count = count,
                           .depth = shape.depth,
                           .stride = shape.depth * size,
                           .depth_stride = size,
                           .type = shape.operands};
    };
    std::vector<std::uint32_t> d(std::size_t{shape.rows} * shape.columns);
    std::vector<std::uint32_t*> rows;
    for (unsigned m = 0; m < shape.rows; ++m) rows.push_back(d.data() + std::size_t{m} * shape.columns);

    PackedRows a;
    PackedColumns b;
    // The best of many short rounds: other programs may share the core.
    using Clock = std::chrono::steady_clock;
    constexpr unsigned kProducts = 4;
    const double multiply_adds = 1.0 * shape.rows * shape.columns * shape.depth * kProducts;
    const auto end = Clock::now() + std::chrono::milliseconds(500);
    double best = 0;
    while (Clock::now() < end) {
        const auto start = Clock::now();
        for (unsigned i = 0; i < kProducts; ++i) {
            a.pack(view(a_bytes, shape.rows));
            if (i % shape.uses_of_columns == 0) b.pack(view(b_bytes, shape.columns));
            multiply(a, b, {.type = shape.accumulator, .add_c = i != 0}, rows);
        }
        best = std::max(best, multiply_adds / std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
}

}  // namespace

int main() {
    using enum OperandType;
    using enum Data;
    constexpr auto kF32 = AccumulatorType::f32;
    constexpr auto kF16 = AccumulatorType::f16;
    const Shape shapes[] = {
        // With A and B in each other's place.
        {"mma m16n8k16", 8, 16, 16, f16, kF32, normal},
        {"mma m16n8k16", 8, 16, 16, bf16, kF32, softmax},
        {"mma m16n8k16", 8, 16, 16, f16, kF16, normal},
        {"mma m16n8k8", 8, 16, 8, tf32, kF32, normal},
        // A warp's part.
        {"wgmma m64n64k16", 16, 64, 16, bf16, kF32, softmax, 4},
        {"wgmma m64n256k16", 16, 256, 16, f16, kF32, normal, 4},
        {"wgmma m64n256k16", 16, 256, 16, f16, kF16, normal, 4},
        {"tcgen05 m64n64k16", 64, 64, 16, f16, kF32, softmax},
        {"tcgen05 m128n128k16", 128, 128, 16, bf16, kF32, normal},
        {"tcgen05 m128n128k16", 128, 128, 16, bf16, kF32, softmax},
        {"tcgen05 m128n128k16", 128, 128, 16, f16, kF32, bits},
        {"tcgen05 m128n128k16", 128, 128, 16, bf16, kF32, bits},
        {"tcgen05 m128n128k16", 128, 128, 16, bf16, kF32, poison},
    };
    const auto name = [](Data data) {
        switch (data) {
            case normal:
                return "normal";
            case softmax:
                return "softmax";
            case bits:
                return "any bits";
            case poison:
                break;
        }
        return "poison";
    };
    for (const Shape& shape : shapes) {
        const char* type = shape.operands == f16 ? "f16" : shape.operands == bf16 ? "bf16" : "tf32";
        fmt::print("{:20} {:4} -> {}, {:8}: {:5.2f} G multiply-adds/s\n", shape.instruction, type,
                   shape.accumulator == kF32 ? "f32" : "f16", name(shape.data), measure(shape) * 1e-9);
    }
}
