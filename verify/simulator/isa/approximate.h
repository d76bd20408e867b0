#pragma once
#include "verify/simulator/isa/decoder.h"

namespace block_attention::simulator {

/// rcp.approx, whose modifier .approx has been taken.
void decode_reciprocal_approximation(Decoder& decoder);

/// div.approx or div.full, whose modifier has been taken.
void decode_quotient_approximation(Decoder& decoder, bool full);

}  // namespace block_attention::simulator
