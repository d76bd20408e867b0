#include "verify/simulator/layout/instruction_descriptor.h"

#include <doctest/doctest.h>

#include <string>

namespace block_attention::simulator {
namespace {

using Multiplicand = InstructionDescriptor::Multiplicand;

InstructionDescriptor make(Multiplicand type, std::uint32_t m, std::uint32_t n, Major major_b) {
    InstructionDescriptor descriptor;
    descriptor.a = type;
    descriptor.b = type;
    descriptor.m = m;
    descriptor.n = n;
    descriptor.major_b = major_b;
    return descriptor;
}

TEST_CASE("worked instruction descriptors: QK (both K-major) and PV (V N-major), f32 accumulators") {
    struct Row {
        std::uint32_t m;
        std::uint32_t n;
        std::uint32_t bf16_qk;
        std::uint32_t bf16_pv;
        std::uint32_t f16_qk;
        std::uint32_t f16_pv;
    };
    for (const Row& row : {Row{64, 64, 0x04100490, 0x04110490, 0x04100010, 0x04110010},
                           Row{64, 128, 0x04200490, 0x04210490, 0x04200010, 0x04210010},
                           Row{128, 64, 0x08100490, 0x08110490, 0x08100010, 0x08110010},
                           Row{128, 128, 0x08200490, 0x08210490, 0x08200010, 0x08210010}}) {
        CHECK(encode_instruction_descriptor(make(Multiplicand::bf16, row.m, row.n, Major::k)) == row.bf16_qk);
        CHECK(encode_instruction_descriptor(make(Multiplicand::bf16, row.m, row.n, Major::mn)) == row.bf16_pv);
        CHECK(encode_instruction_descriptor(make(Multiplicand::f16, row.m, row.n, Major::k)) == row.f16_qk);
        CHECK(encode_instruction_descriptor(make(Multiplicand::f16, row.m, row.n, Major::mn)) == row.f16_pv);
        CHECK(decode_instruction_descriptor(row.bf16_pv) == make(Multiplicand::bf16, row.m, row.n, Major::mn));
        CHECK(check_instruction_descriptor(row.bf16_pv, false).ok());
    }
}

/// Whether kind::f16 has a descriptor, and only then the fields: written once more from the table, bit by bit.
bool is_legal(std::uint32_t bits, bool a_in_tensor_memory) {
    const auto bit = [&](unsigned i) { return (bits >> i & 1) != 0; };
    for (const unsigned zero : {0U, 1U, 2U, 3U, 5U, 6U, 8U, 9U, 11U, 12U, 23U, 29U, 30U, 31U}) {
        if (bit(zero)) return false;
    }
    if (!bit(4) && (bit(7) || bit(10))) return false;
    if (a_in_tensor_memory && bit(15)) return false;
    const std::uint32_t m_field = bits >> 24 & 31;
    const std::uint32_t n_field = bits >> 17 & 63;
    return (m_field == 4 || m_field == 8) && n_field >= 1 && n_field <= 32;
}

TEST_CASE("exactly the descriptors of the table pass: every M, N, type and single wrong bit") {
    for (std::uint32_t n = 0; n < 64; ++n) {
        for (std::uint32_t m = 0; m < 32; ++m) {
            for (std::uint32_t low = 0; low < 1U << 7; ++low) {
                const std::uint32_t types =
                    (low & 3) << 4 | (low >> 2 & 3) << 7 | (low >> 4 & 3) << 10 | low >> 6 << 15;
                const std::uint32_t bits = types | n << 17 | m << 24;
                for (const bool a_in_tensor_memory : {false, true}) {
                    REQUIRE(check_instruction_descriptor(bits, a_in_tensor_memory).ok() ==
                            is_legal(bits, a_in_tensor_memory));
                }
            }
        }
    }
    for (const std::uint32_t good : {0x08210490U, 0x04100010U, 0x08210490U | 0x6000U | 0x8000U, 0x08200000U}) {
        REQUIRE(check_instruction_descriptor(good, false).ok());
        CHECK(encode_instruction_descriptor(decode_instruction_descriptor(good)) == good);
        for (unsigned bit = 0; bit < 32; ++bit) {
            const std::uint32_t bits = good ^ 1U << bit;
            CHECK(check_instruction_descriptor(bits, false).ok() == is_legal(bits, false));
        }
    }
}

TEST_CASE("the fields are where the table puts them") {
    InstructionDescriptor descriptor = make(Multiplicand::f16, 64, 8, Major::k);
    const std::uint32_t base = 1U << 4 | 1U << 17 | 4U << 24;
    CHECK(encode_instruction_descriptor(descriptor) == base);
    descriptor.negate_a = true;
    CHECK(encode_instruction_descriptor(descriptor) == (base | 1U << 13));
    descriptor.negate_b = true;
    CHECK(encode_instruction_descriptor(descriptor) == (base | 3U << 13));
    descriptor.major_a = Major::mn;
    CHECK(encode_instruction_descriptor(descriptor) == (base | 7U << 13));
    descriptor.b = Multiplicand::bf16;
    CHECK(encode_instruction_descriptor(descriptor) == (base | 7U << 13 | 1U << 10));
    descriptor.n = 256;
    CHECK(decode_instruction_descriptor(encode_instruction_descriptor(descriptor)) == descriptor);
}

TEST_CASE("messages name the field, the value and the limit") {
    const auto error = [](std::uint32_t bits, bool a_in_tensor_memory = false) {
        return check_instruction_descriptor(bits, a_in_tensor_memory).error;
    };
    CHECK(error(0x08210491) ==
          "the instruction descriptor 0x08210491 has 1 in bits 0-1 (sparsity selector): kind::f16 without sparsity and "
          ".ws "
          "needs 0");
    CHECK(error(0x082104A0) ==
          "the instruction descriptor 0x082104a0 has D type 2 (bits 4-5): kind::f16 has 0 (f16) and 1 (f32)");
    CHECK(error(0x08210510) ==
          "the instruction descriptor 0x08210510 has A type 2 (bits 7-9): kind::f16 has 0 (f16) and 1 (bf16)");
    CHECK(error(0x08210890) ==
          "the instruction descriptor 0x08210890 has B type 2 (bits 10-12): kind::f16 has 0 (f16) and 1 (bf16)");
    CHECK(error(0x08210480) ==
          "the instruction descriptor 0x08210480 has an f16 accumulator (bits 4-5) of bf16 multiplicands: use f32");
    CHECK(error(0x10210490) ==
          "the instruction descriptor 0x10210490 has M = 256 (bits 24-28): cta_group::1 has 64 and 128");
    CHECK(error(0x08010490) == "the instruction descriptor 0x08010490 has N = 0 (bits 17-22): it must be in 8..256");
    CHECK(error(0x08218490, true) ==
          "the instruction descriptor 0x08218490 transposes A (bit 15), which is in Tensor Memory: there A can only be "
          "K-major");
    CHECK(error(0x08218490).empty());
}

TEST_CASE("N in steps of 8 is contested for M = 128") {
    for (std::uint32_t n = 8; n <= 256; n += 8) {
        for (const std::uint32_t m : {64U, 128U}) {
            const std::uint32_t bits = encode_instruction_descriptor(make(Multiplicand::bf16, m, n, Major::k));
            const Verdict verdict = check_instruction_descriptor(bits, false);
            CHECK(verdict.ok());
            CHECK(verdict.warning.empty() == (m == 64 || n % 16 == 0));
        }
    }
}

}  // namespace
}  // namespace block_attention::simulator
