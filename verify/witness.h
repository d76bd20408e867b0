#pragma once
#include <cstddef>
#include <vector>

#include "verify/compare.h"

namespace block_attention {

/// A second evaluation of a forward problem that shares nothing with the oracle: plain loops in long double over whole
/// sequences, where the block-diagonal mask sets the logits outside a tile to minus infinity. The oracle is judged by
/// it.
///
/// Above 2^24 query-key pairs (sum of tokens^2, times heads) each row looks at its own tile only, which leaves out
/// terms that are exactly zero.

/// What a tile and head must come out as, and the largest error that an evaluation in double can make, both row by row.
struct WitnessTile {
    std::vector<double> expected;
    std::vector<double> error;
};

/// Evaluates one tile and head of a valid problem in host memory.
WitnessTile witness_tile(const Problem& problem, const Tile& tile, std::int64_t head);

/// Compares O (host memory) with the witness, on all cores; keeps the `keep` worst tiles. See compare_forward.
Comparison compare_with_witness(const Problem& problem, std::size_t keep = 5);

}  // namespace block_attention
