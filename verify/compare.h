#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/problem.h"
#include "reference/stage.h"
#include "reference/tiles.h"

namespace block_attention {

/// The share of its bound that a stored element uses: 0 if `expected` itself rounds to `computed`, else the distance
/// from `expected` to the nearest real number that rounds to `computed` in `dtype`, over `error`. Above 1: wrong.
/// Infinity for a NaN or an infinity where `expected` rounds to a finite number; 0 for any non-finite element where
/// `expected` is not finite, since then no finite answer exists.
double bound_share(DType dtype, double computed, double expected, double error);

/// One element out of place.
struct ElementError {
    std::int64_t row = 0;  ///< in the tile
    std::int64_t dim = 0;
    double computed = 0;
    double expected = 0;
    double error = 0;  ///< the bound
    double share = 0;
};

struct TileComparison {
    Tile tile;
    std::int64_t head = 0;
    ElementError worst;      ///< the element with the largest share
    std::int64_t wrong = 0;  ///< elements with a share above 1
};

struct Comparison {
    std::int64_t elements = 0;
    std::int64_t wrong = 0;
    double largest_share = 0;
    std::vector<TileComparison> tiles;  ///< worst first; at most the number asked for
    std::vector<double> shares;         ///< largest share of every tile and head, in order of tile, then head

    [[nodiscard]] bool passed() const { return wrong == 0; }
};

/// Compares a forward problem's O (host memory) with the oracle, element by element, on all cores; keeps the `keep`
/// worst tiles. `problem` is valid and its views point to host memory.
Comparison compare_forward(const Problem& problem, const Arithmetic& arithmetic, std::size_t keep = 5);

}  // namespace block_attention
