#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace block_attention::simulator {

/// An instruction's operand type (PTX ISA 5.2).
enum class Type : std::uint8_t {
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    bf16,
    tf32,
    f32,
    f64,
    u16x2,
    s16x2,
    f16x2,
    bf16x2,
    f32x2,
};

/// The type that a modifier names, or nothing: "f32" gives Type::f32.
std::optional<Type> parse_type(std::string_view modifier);

/// Bits of a value; 1 for a predicate.
unsigned bits_of(Type type);
bool is_signed(Type type);
bool is_unsigned(Type type);
bool is_float(Type type);
/// Whether the type is untyped bits: b8 to b128.
bool is_bits(Type type);

}  // namespace block_attention::simulator
