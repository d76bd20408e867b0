#include "verify/simulator/layout/instruction_descriptor.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace block_attention::simulator {
namespace {

/// Bits first .. first + count - 1.
constexpr std::uint32_t field(std::uint32_t bits, unsigned first, unsigned count) {
    return bits >> first & ((1U << count) - 1);
}

struct FixedField {
    unsigned first;
    unsigned count;
    std::string_view meaning;
};

/// What must be zero in a dense kind::f16 product that is not .ws.
constexpr std::array<FixedField, 7> kZeroFields{{
    {0, 2, "sparsity selector"},
    {2, 1, "sparsity"},
    {3, 1, "saturation"},
    {6, 1, "reserved"},
    {23, 1, "reserved"},
    {29, 1, "reserved"},
    {30, 2, "maximum shift of .ws"},
}};

std::string find_error(std::uint32_t bits, bool a_in_tensor_memory) {
    const auto fault = [&](std::string_view what) {
        return fmt::format("the instruction descriptor {:#010x} {}", bits, what);
    };
    for (const FixedField& zero : kZeroFields) {
        const std::uint32_t value = field(bits, zero.first, zero.count);
        if (value != 0) {
            return fault(fmt::format("has {} in bits {}-{} ({}): kind::f16 without sparsity and .ws needs 0", value,
                                     zero.first, zero.first + zero.count - 1, zero.meaning));
        }
    }
    const std::uint32_t d = field(bits, 4, 2);
    const std::uint32_t a = field(bits, 7, 3);
    const std::uint32_t b = field(bits, 10, 3);
    if (d > 1) return fault(fmt::format("has D type {} (bits 4-5): kind::f16 has 0 (f16) and 1 (f32)", d));
    if (a > 1) return fault(fmt::format("has A type {} (bits 7-9): kind::f16 has 0 (f16) and 1 (bf16)", a));
    if (b > 1) return fault(fmt::format("has B type {} (bits 10-12): kind::f16 has 0 (f16) and 1 (bf16)", b));
    if (d == 0 && (a != 0 || b != 0)) return fault("has an f16 accumulator (bits 4-5) of bf16 multiplicands: use f32");
    if (a_in_tensor_memory && field(bits, 15, 1) != 0) {
        return fault("transposes A (bit 15), which is in Tensor Memory: there A can only be K-major");
    }
    const std::uint32_t m = field(bits, 24, 5) << 4;
    const std::uint32_t n = field(bits, 17, 6) << 3;
    if (m != 64 && m != 128) return fault(fmt::format("has M = {} (bits 24-28): cta_group::1 has 64 and 128", m));
    if (n < 8 || n > 256) return fault(fmt::format("has N = {} (bits 17-22): it must be in 8..256", n));
    return {};
}

}  // namespace

InstructionDescriptor decode_instruction_descriptor(std::uint32_t bits) {
    return {
        .m = field(bits, 24, 5) << 4,
        .n = field(bits, 17, 6) << 3,
        .d = static_cast<InstructionDescriptor::Accumulator>(field(bits, 4, 2)),
        .a = static_cast<InstructionDescriptor::Multiplicand>(field(bits, 7, 3)),
        .b = static_cast<InstructionDescriptor::Multiplicand>(field(bits, 10, 3)),
        .negate_a = field(bits, 13, 1) != 0,
        .negate_b = field(bits, 14, 1) != 0,
        .major_a = static_cast<Major>(field(bits, 15, 1)),
        .major_b = static_cast<Major>(field(bits, 16, 1)),
    };
}

Verdict check_instruction_descriptor(std::uint32_t bits, bool a_in_tensor_memory) {
    Verdict verdict{find_error(bits, a_in_tensor_memory), {}};
    if (!verdict.ok()) return verdict;
    const InstructionDescriptor descriptor = decode_instruction_descriptor(bits);
    if (descriptor.m == 128 && descriptor.n % 16 != 0) {
        verdict.warning = fmt::format(
            "the instruction descriptor {:#010x} has M = 128 and N = {}: the PTX ISA allows steps of 8 for N, public "
            "kernels "
            "only use steps of 16",
            bits, descriptor.n);
    }
    return verdict;
}

std::uint32_t encode_instruction_descriptor(const InstructionDescriptor& descriptor) {
    return static_cast<std::uint32_t>(descriptor.d) << 4 | static_cast<std::uint32_t>(descriptor.a) << 7 |
           static_cast<std::uint32_t>(descriptor.b) << 10 | std::uint32_t{descriptor.negate_a} << 13 |
           std::uint32_t{descriptor.negate_b} << 14 | static_cast<std::uint32_t>(descriptor.major_a) << 15 |
           static_cast<std::uint32_t>(descriptor.major_b) << 16 | descriptor.n >> 3 << 17 | descriptor.m >> 4 << 24;
}

}  // namespace block_attention::simulator
