/// Products of short vectors of bytes (PTX ISA 9.7.1: dp4a, dp2a).
#include <array>
#include <cstdint>
#include <optional>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"

namespace block_attention::simulator {

namespace {

/// c plus the sum of the products of 4 bytes of a and b, or of 2 halves of a and 2 bytes of b from `first` on. Sums
/// wrap around, so that their own sign does not matter.
template <typename A, typename B, unsigned first>
struct DotProduct {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        constexpr unsigned kTerms = 4 / sizeof(A);
        for (unsigned k = 0; k < kTerms; ++k) {
            const auto left = static_cast<A>(a >> (8 * sizeof(A) * k));
            const auto right = static_cast<B>(b >> (8 * (first + k)));
            c += static_cast<std::uint32_t>(std::int64_t{left} * std::int64_t{right});
        }
        return c;
    }
};

template <typename A, typename B, unsigned first>
constexpr Execute kExecute =
    &execute_lanes<DotProduct<A, B, first>, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

template <typename UnsignedA, typename SignedA, unsigned first>
Execute choose(bool signed_a, bool signed_b) {
    if (signed_a) return signed_b ? kExecute<SignedA, std::int8_t, first> : kExecute<SignedA, std::uint8_t, first>;
    return signed_b ? kExecute<UnsignedA, std::int8_t, first> : kExecute<UnsignedA, std::uint8_t, first>;
}

void decode_operands(Decoder& d) {
    d.finish_modifiers();
    d.expect_operands(4);
    d.result.slots[0] = d.destination(0, Type::u32);
    for (std::size_t k = 1; k <= 3; ++k) d.result.slots[k] = d.source(k, Type::u32);
}

/// Whether each of the two types is signed.
std::array<bool, 2> take_signs(Decoder& d) {
    std::array<bool, 2> signs{};
    for (bool& sign : signs) {
        const Type type = d.take_type();
        if (type != Type::u32 && type != Type::s32) d.refuse("its types are .u32 and .s32");
        sign = type == Type::s32;
    }
    return signs;
}

void decode_four(Decoder& d) {
    const auto [a, b] = take_signs(d);
    d.result.execute = choose<std::uint8_t, std::int8_t, 0>(a, b);
    decode_operands(d);
}

void decode_two(Decoder& d) {
    const auto high = d.take_one<bool>({{"lo", false}, {"hi", true}});
    if (!high) d.refuse("one of .lo and .hi is missing");
    const auto [a, b] = take_signs(d);
    d.result.execute =
        *high ? choose<std::uint16_t, std::int16_t, 2>(a, b) : choose<std::uint16_t, std::int16_t, 0>(a, b);
    decode_operands(d);
}

constexpr std::array kOpcodes{Opcode{"dp4a", decode_four}, Opcode{"dp2a", decode_two}};

}  // namespace

std::span<const Opcode> dot_product_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
