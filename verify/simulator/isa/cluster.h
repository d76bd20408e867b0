#pragma once
#include "verify/simulator/isa/decoder.h"

namespace block_attention::simulator {

/// barrier.cluster, after its modifier .cluster was taken (PTX ISA 9.7.13.3).
void decode_cluster_barrier(Decoder& d);

}  // namespace block_attention::simulator
