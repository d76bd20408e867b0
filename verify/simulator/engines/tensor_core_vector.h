#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

/// Vectors of the compiler's own (GCC and Clang), which it maps to whatever the machine has. Always inlined, so that no
/// vector is passed between functions, where it would depend on the machine.
namespace block_attention::simulator {

inline constexpr unsigned kLanes = 8;
using Floats __attribute__((vector_size(4 * kLanes))) = float;
using Integers __attribute__((vector_size(4 * kLanes))) = std::int32_t;
using Words __attribute__((vector_size(4 * kLanes))) = std::uint32_t;
using Shorts __attribute__((vector_size(4 * kLanes))) = std::int16_t;

template <typename Vector, typename Element>
[[gnu::always_inline]] inline Vector load(const Element* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
}

template <typename Vector, typename Element>
[[gnu::always_inline]] inline void store(Element* to, Vector vector) {
    std::memcpy(to, &vector, sizeof(vector));
}

template <typename Vector>
[[gnu::always_inline]] inline Vector larger(Vector a, Vector b) {
    return a > b ? a : b;
}

template <typename Vector>
[[gnu::always_inline]] inline Vector smaller(Vector a, Vector b) {
    return a < b ? a : b;
}

[[gnu::always_inline]] inline Integers all(std::int32_t value) { return Integers{} + value; }

[[gnu::always_inline]] inline Words words_of(Floats vector) { return std::bit_cast<Words>(vector); }
[[gnu::always_inline]] inline Words words_of(Integers vector) { return std::bit_cast<Words>(vector); }
[[gnu::always_inline]] inline Integers integers_of(Floats vector) { return std::bit_cast<Integers>(vector); }
[[gnu::always_inline]] inline Integers integers_of(Words vector) { return std::bit_cast<Integers>(vector); }
[[gnu::always_inline]] inline Integers integers_of(Shorts vector) { return std::bit_cast<Integers>(vector); }
[[gnu::always_inline]] inline Floats floats_of(Words vector) { return std::bit_cast<Floats>(vector); }
[[gnu::always_inline]] inline Floats floats_of(Integers vector) { return std::bit_cast<Floats>(vector); }

/// 2^exponent for the exponents -126 to 127 of normal numbers.
[[gnu::always_inline]] inline Floats power_of_two(Integers exponent) { return floats_of((exponent + 127) << 23); }

/// The biased exponents of f32 bit patterns.
[[gnu::always_inline]] inline Integers exponent_field(Words bits) { return integers_of(bits << 1 >> 24); }

}  // namespace block_attention::simulator
