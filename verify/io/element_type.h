#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace block_attention {

/// Type of the elements of a file or of a buffer that any kernel may work on, named as PTX names it.
enum class ElementType : std::uint8_t { u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16, f32, f64 };

/// "u8", ..., in the enum's order.
std::span<const std::string> element_type_names();
std::string_view name_of(ElementType type);
/// The type of that name, or nothing.
std::optional<ElementType> parse_element_type(std::string_view name);

/// Bytes of an element.
std::size_t size_of(ElementType type);
bool is_floating(ElementType type);
/// Whether the type has negative numbers.
bool is_signed(ElementType type);

/// Every integer up to this magnitude is a number of the type: 2^11 for f16; for integers the largest of the type.
std::uint64_t largest_exact_integer(ElementType type);

/// The element at `data`, exactly: a long double has the 64 bits of the widest integer on every Linux that this runs
/// on (x86-64: 64, aarch64: 113).
long double load_element(ElementType type, const std::byte* data);

/// Stores a floating-point number, rounded once to nearest even: overflow gives infinity.
void store_floating(ElementType type, double value, std::byte* data);

/// Stores the low bits of an integer, which must be one of the type.
void store_integer(ElementType type, std::uint64_t bits, std::byte* data);

}  // namespace block_attention
