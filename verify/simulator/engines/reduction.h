#pragma once
#include <cstddef>
#include <span>

#include "verify/simulator/engines/copy.h"

namespace block_attention::simulator {

/// Combines elements with those at `destination`, one after the other, each atomically (cp.reduce.async.bulk and its
/// tensor form; PTX ISA 9.7.9.25.4.2 and 9.7.9.27.1.3). The bytes are whole elements.
void reduce(const Reduction& reduction, std::byte* destination, std::span<const std::byte> elements);

}  // namespace block_attention::simulator
