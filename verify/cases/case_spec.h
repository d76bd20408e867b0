#pragma once
#include <cstdint>
#include <string_view>

#include "verify/cases/case.h"

namespace block_attention {

/// The most elements a tensor of a case may span, padding included.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

/// Reads a case from "key=value,key=value,...". Keys, each at most once:
///   batch, tokens           a uniform batch (default 1 x 256)
///   lengths                 a jagged batch instead: terms joined by "+", each a length, a range "800..2000" drawn from
///                           with the seed, or either with a count: "64x3", "800..2000x1152"
///   trailing                jagged: rows behind the last sequence that belong to no tile (default 0)
///   heads, dim, block       default 1, 128, 64
///   dtype                   fp16, bf16, fp32 (default fp16)
///   layout, fill            see layout.h and fill.h (default bhsd, or thd if jagged; normal)
///   scale                   default 1/sqrt(dim)
///   name                    default: the text itself
/// Throws UsageError that names the key, the value and what is allowed.
Case parse_case(std::string_view text, std::uint64_t seed);

}  // namespace block_attention
