#pragma once
#include <cstdint>
#include <vector>

#include "verify/simulator/conformance/form.h"

namespace block_attention::conformance {

/// The operand tuples of a form whose operands are of these kinds: kTuples values of the first operand, then of the
/// second, and so on, each in the low bits of 64. The same on every machine.
///
/// Each quarter looks for faults of its own kind:
/// 1. Special values, every combination of the most important ones (zeros, infinities, NaNs with payloads, the least
/// and
///    the largest numbers). Of a single operand: all special values and their neighbours.
/// 2. Special values and random ones, mixed.
/// 3. Related operands: equal, opposite, complementary, neighbours; floating-point numbers whose sum, product or
/// quotient
///    lies at a boundary of the format, at a tie, or almost cancels.
/// 4. Random bits; numbers of similar size.
std::vector<std::uint64_t> make_tuples(Kinds operands);

}  // namespace block_attention::conformance
