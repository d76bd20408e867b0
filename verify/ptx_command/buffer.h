#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "verify/ptx_command/content.h"
#include "verify/ptx_command/json_value.h"

namespace block_attention {

/// A buffer in global memory.
struct BufferSpec {
    std::string name;
    ArraySpec array;
};

/// Reads the buffers of a launch spec, in the file's order.
std::vector<BufferSpec> read_buffers(const JsonValue& object, const std::filesystem::path& folder);

/// The number of the buffer that a text names.
std::size_t find_buffer(const JsonValue& name, const std::vector<BufferSpec>& buffers);

/// The same by name alone; `place` is where complaints point to.
std::size_t find_buffer(const JsonValue& place, const std::string& name, const std::vector<BufferSpec>& buffers);

}  // namespace block_attention
