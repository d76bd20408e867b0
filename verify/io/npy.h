#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "verify/io/element_type.h"

/// NumPy's array files (numpy.lib.format, versions 1.0 to 3.0).
namespace block_attention {

/// An array in row-major order, little-endian.
struct NpyArray {
    ElementType type = ElementType::u8;
    std::vector<std::int64_t> shape;  ///< empty for a scalar
    std::vector<std::byte> bytes;
};

/// Elements of an array of that shape; nothing if they are more than an int64 counts.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// "u8[2, 3]".
std::string describe_array(ElementType type, std::span<const std::int64_t> shape);

/// Reads a file of integers (1 to 8 bytes), booleans (as u8), f2, f4, f8, or V2, which is how bfloat16 is saved. Throws
/// UsageError that begins with the path: for anything that is no such file, for big-endian and Fortran order, for a
/// size that doesn't fit the shape.
NpyArray read_npy(const std::filesystem::path& path);

/// Writes a file of version 1.0. bf16 becomes V2: `numpy.load(path).view(ml_dtypes.bfloat16)` reads it.
void write_npy(std::ostream& stream, ElementType type, std::span<const std::int64_t> shape,
               std::span<const std::byte> bytes);

}  // namespace block_attention
