#pragma once
#include <vector>

#include "verify/cases/case.h"

namespace block_attention {

/// The cases that a plain `verify` runs: small, but between them every element type, both usual head dims and odd ones,
/// every layout, jagged batches with tails and empty sequences, and values that break careless arithmetic.
const std::vector<Case>& builtin_cases();

}  // namespace block_attention
