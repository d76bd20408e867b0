#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace block_attention {

/// Element type of a tensor.
enum class DType : std::uint8_t { fp16, bf16, fp32 };

/// Bytes of one element.
int size_of(DType dtype);

/// "fp16", "bf16" or "fp32".
std::string_view name_of(DType dtype);

/// The type of that name, or nothing.
std::optional<DType> parse_dtype(std::string_view name);

/// What defines a binary floating-point format, as far as rounding to it is concerned.
struct Format {
    int significand_bits;  ///< including the implicit leading one: 11, 8, 24
    int min_exponent;      ///< exponent of the smallest normal number: -14, -126, -126
    int max_exponent;      ///< exponent of the largest finite number: 15, 127, 127
};

/// The format of a type (IEEE 754 binary16 and binary32; bfloat16 has binary32's exponents).
Format format_of(DType dtype);

/// `value` rounded once, to nearest with ties to even, to a number of the type; overflow gives infinity, subnormals are
/// kept. This is cvt.rn (PTX ISA 9.7.9.21), but from double, so that an oracle's result is rounded once, not twice.
double round_to(DType dtype, double value);

/// The element that `data` points to, exactly.
double load_element(DType dtype, const void* data);

/// Stores `value`, which must be a number of the type (see round_to), an infinity or a NaN, at `data`.
void store_element(DType dtype, void* data, double value);

}  // namespace block_attention
