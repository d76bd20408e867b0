#pragma once
#include <string>
#include <vector>

#include "verify/ptx_command/buffer.h"
#include "verify/ptx_command/json_value.h"
#include "verify/simulator/layout/tensor_map.h"

namespace block_attention {

/// A tensor map by its fields. Its address is the buffer's plus an offset, known only once the buffer is allocated.
struct TensorMapFields {
    std::size_t buffer = 0;
    std::uint64_t byte_offset = 0;
    simulator::TensorMap map;
};

/// Reads the object behind "tensor_map". What is missing follows from the buffer: its type, its shape as dims (the last
/// extent first), strides without gaps. Throws UsageError that names the field, also for what
/// cuTensorMapEncodeTiled would refuse on that architecture (90, 100) if the buffer is aligned to 256 bytes.
TensorMapFields read_tensor_map(const JsonValue& object, const std::vector<BufferSpec>& buffers, int architecture);

/// The map's 128 bytes for a buffer at that address.
simulator::TensorMapBytes encode(const TensorMapFields& fields, std::uint64_t buffer_address);

}  // namespace block_attention
