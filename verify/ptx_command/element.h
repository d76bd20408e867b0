#pragma once
#include <cstddef>
#include <vector>

#include "verify/io/element_type.h"
#include "verify/ptx_command/json_value.h"

namespace block_attention {

/// Appends one element as a launch spec writes it: a number, which must fit the type (floating-point: is rounded to
/// nearest even, and must not overflow); for floating-point types also "nan", "inf", "-inf"; for every type its bits as
/// a text, "0x7fc0". Throws UsageError.
void append_element(const JsonValue& value, ElementType type, std::vector<std::byte>& bytes);

/// "0x7fc0": the bits of an element.
std::string bits_of(ElementType type, const std::byte* data);

/// "-1.5", "nan", "17": an element in decimal, with as many digits as tell it from its neighbours.
std::string decimal_of(ElementType type, const std::byte* data);

}  // namespace block_attention
