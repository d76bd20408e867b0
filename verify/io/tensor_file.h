#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "verify/io/safetensors.h"
#include "verify/tensors.h"

namespace block_attention {

/// Loads a problem from a safetensors file:
///   q, k, v       F16, BF16 or F32, all the same; [batch, heads, seq, dim], or jagged [tokens, heads, dim]
///   offsets       jagged only: batch + 1 first tokens, I32 or I64
///   scale         optional: one number; else 1/sqrt(dim)
///   block_size    optional: one integer, as a tensor or in the metadata; `block` goes before it; else 64
/// Throws UsageError that names the file and its first fault.
Tensors load_tensor_file(const std::filesystem::path& path, std::optional<std::int64_t> block);

/// A problem's O as a dense tensor: [batch, heads, seq, dim], or jagged [tokens, heads, dim]. Rows outside every tile,
/// which no stage writes, are zero.
NamedTensor dense_output(const Tensors& tensors, std::string name);

}  // namespace block_attention
