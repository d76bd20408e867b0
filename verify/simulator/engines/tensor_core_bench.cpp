/// How fast tensor-core products are computed: G multiply-adds a second of one core, packing included.
#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <random>
#include <vector>

#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/isa/half.h"

namespace {

using namespace block_attention::simulator;

struct Shape {
    const char* instruction;
    unsigned m;
    unsigned n;
    unsigned k;
    OperandType operands;
    AccumulatorType accumulator;
    bool softmax;  ///< A like the probabilities of a softmax, with some zeros, instead of normal numbers.
};

std::uint32_t to_element(OperandType type, float value) {
    if (type == OperandType::f16) return to_half(value).bits;
    if (type == OperandType::bf16) return to_bfloat16(value).bits;
    return std::bit_cast<std::uint32_t>(value);
}

std::vector<std::byte> random_elements(OperandType type, std::size_t count, bool softmax, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < count; ++i) {
        const float x = normal(generator);
        const float probability = generator() % 8 == 0 ? 0.0F : std::exp(3 * x - 8);
        std::uint32_t element = to_element(type, softmax ? probability : x);
        for (unsigned byte = 0; byte < (type == OperandType::tf32 ? 4U : 2U); ++byte, element >>= 8) {
            bytes.push_back(static_cast<std::byte>(element & 0xFF));
        }
    }
    return bytes;
}

double measure(const Shape& shape) {
    const std::ptrdiff_t size = shape.operands == OperandType::tf32 ? 4 : 2;
    const auto a_bytes = random_elements(shape.operands, std::size_t{shape.m} * shape.k, shape.softmax, 1);
    const auto b_bytes = random_elements(shape.operands, std::size_t{shape.n} * shape.k, false, 2);
    const auto view = [&](const std::vector<std::byte>& bytes, unsigned count) {
        return OperandView{.data = bytes.data(),
                           .count = count,
                           .depth = shape.k,
                           .stride = shape.k * size,
                           .depth_stride = size,
                           .type = shape.operands};
    };
    std::vector<std::uint32_t> d(std::size_t{shape.m} * shape.n);
    std::vector<std::uint32_t*> rows;
    for (unsigned m = 0; m < shape.m; ++m) rows.push_back(d.data() + std::size_t{m} * shape.n);

    PackedRows a;
    PackedColumns b;
    // Processor time: other programs may share the core.
    const std::clock_t start = std::clock();
    double seconds = 0;
    double multiply_adds = 0;
    while (seconds < 0.5) {
        for (unsigned i = 0; i < 16; ++i) {
            a.pack(view(a_bytes, shape.m));
            b.pack(view(b_bytes, shape.n));
            multiply(a, b, {.type = shape.accumulator, .add_c = i % 4 != 0}, rows);
            multiply_adds += 1.0 * shape.m * shape.n * shape.k;
        }
        seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    }
    return multiply_adds / seconds;
}

}  // namespace

int main() {
    using enum OperandType;
    constexpr auto kF32 = AccumulatorType::f32;
    constexpr auto kF16 = AccumulatorType::f16;
    const Shape shapes[] = {
        {"mma m16n8k16", 16, 8, 16, bf16, kF32, false},
        {"mma m16n8k16", 16, 8, 16, f16, kF16, false},
        {"mma m16n8k8", 16, 8, 8, tf32, kF32, false},
        {"wgmma m64n64k16", 64, 64, 16, bf16, kF32, false},
        {"wgmma m64n256k16", 64, 256, 16, f16, kF32, false},
        {"wgmma m64n256k16", 64, 256, 16, f16, kF16, false},
        {"tcgen05 m128n128k64", 128, 128, 64, bf16, kF32, false},
        {"tcgen05 m128n128k64", 128, 128, 64, bf16, kF32, true},
        {"tcgen05 m64n64k128", 64, 64, 128, f16, kF32, true},
    };
    for (const Shape& shape : shapes) {
        const char* type = shape.operands == f16 ? "f16" : shape.operands == bf16 ? "bf16" : "tf32";
        fmt::print("{:20} {:4} -> {}, {:7} A: {:5.2f} G multiply-adds/s\n", shape.instruction, type,
                   shape.accumulator == kF32 ? "f32" : "f16", shape.softmax ? "softmax" : "normal",
                   measure(shape) * 1e-9);
    }
}
