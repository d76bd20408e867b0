#pragma once
#include <cstdint>

#include "verify/cases/case.h"
#include "verify/tensors.h"

namespace block_attention {

/// The tensors of a case, inputs filled from the seed, everything around their elements poisoned. Throws UsageError.
Tensors load_case(const Case& test_case, std::uint64_t seed);

}  // namespace block_attention
