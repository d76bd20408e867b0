#pragma once
#include <Eigen/Core>
#include <cstdint>

#include "reference/problem.h"
#include "reference/stage.h"
#include "reference/tiles.h"

namespace block_attention {

/// A tile's rows of one head in double, exactly as stored: `length` x `head_dim`, a token a row.
using TileMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct TileOperands {
    TileMatrix q, k, v;
};

/// Reads a tile's Q, K and V of one head.
TileOperands load_tile(const Problem& problem, const Tile& tile, std::int64_t head);

/// The definition of the forward pass in one tile: softmax(scale * Q K^T) V, everything in double.
TileMatrix attention(const TileOperands& tile, double scale);

/// Solves a valid forward problem on the host: every tile and head by `attention`, on all cores, each element of O
/// rounded once to the problem's type.
void run_oracle(const Problem& problem);

/// The oracle as a stage. It serves every valid forward problem without rotary embedding.
const Stage& oracle_stage();

}  // namespace block_attention
