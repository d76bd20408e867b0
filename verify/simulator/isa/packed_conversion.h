#pragma once
#include "verify/simulator/isa/decoder.h"

namespace block_attention::simulator {

/// Decodes a cvt whose types or modifiers no conversion of one plain value to another has: to and from f16x2, bf16x2,
/// tf32, e4m3x2 and e5m2x2, cvt.pack, .relu and .satfinite. Returns false, and takes nothing, if it is none of these.
bool decode_packed_conversion(Decoder& decoder);

}  // namespace block_attention::simulator
