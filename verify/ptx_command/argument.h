#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "verify/ptx_command/buffer.h"
#include "verify/ptx_command/json_value.h"
#include "verify/ptx_command/tensor_map_argument.h"

namespace block_attention {

/// The address of a buffer plus an offset in bytes.
struct PointerValue {
    std::size_t buffer = 0;
    std::int64_t byte_offset = 0;
};

struct StructureValue;

/// A value of a kernel parameter or of a structure's field. Bytes hold scalars and raw bytes.
using Value = std::variant<std::vector<std::byte>, PointerValue, TensorMapFields, StructureValue>;

struct Field;
struct StructureValue {
    std::vector<Field> fields;
};

/// A value with its size and, in a structure, its place.
struct Field {
    Value value;
    std::string what;  ///< "a u32", "a pointer", for messages
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    std::uint64_t offset = 0;
};

/// What an argument may need to know of the rest of the launch.
struct ArgumentContext {
    const std::vector<BufferSpec>& buffers;
    int architecture = 0;
};

/// Reads one argument: {"u32": 7}, {"f32": [1, 2, 3]}, {"buffer": "x", "offset": 64}, {"bytes": "00ff"},
/// {"tensor_map": {...}}, {"struct": [...]}. Fields of a structure lie one behind the other at their natural
/// alignment, or at the byte that their "at" says. Throws UsageError.
Field read_argument(const JsonValue& object, const ArgumentContext& context);

/// Writes a value to the bytes of its parameter; padding keeps what it holds.
void encode(const Field& field, std::span<const std::uint64_t> buffer_addresses, std::span<std::byte> to);

}  // namespace block_attention
