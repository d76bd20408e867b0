#pragma once
#include "reference/oracle.h"
#include "reference/stage.h"

namespace block_attention {

/// What one tile and head must come out as, before the output's own rounding.
struct TileBound {
    TileMatrix expected;  ///< the oracle's O, `length` x `head_dim`
    TileMatrix error;     ///< the largest |computed - expected| that the stage's arithmetic can cause, same shape
};

/// Evaluates the oracle and the stage's error bound on one tile. The derivation is docs/comparison-bound.md; the bound
/// leaves out the rounding of O to its type, which compare.h treats exactly.
TileBound bound_tile(const TileOperands& tile, double scale, const Arithmetic& arithmetic);

}  // namespace block_attention
