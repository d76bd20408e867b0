#pragma once
#include "verify/simulator/isa/decoder.h"

namespace block_attention::simulator {

/// cp.async.bulk, cp.reduce.async.bulk: after those modifiers were taken (PTX ISA 9.7.9.25.4, 9.7.9.27).
void decode_bulk(Decoder& d);
void decode_bulk_reduction(Decoder& d);

/// The same with .tensor, which was taken as well (PTX ISA 9.7.9.27.1).
void decode_tensor_copy(Decoder& d);
void decode_tensor_reduction(Decoder& d);
void decode_tensor_prefetch(Decoder& d);

/// Takes the operation of a reduction.
std::uint8_t take_reduction_operation(Decoder& d);

}  // namespace block_attention::simulator
