#pragma once
#include "verify/simulator/isa/decoder.h"

namespace block_attention::simulator {

/// rcp.approx, whose modifier .approx has been taken.
void decode_reciprocal_approximation(Decoder& decoder);

}  // namespace block_attention::simulator
