#include "verify/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/parallel.h"
#include "verify/bound.h"

namespace block_attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The reals that round to one number of a format.
struct Interval {
    double lower;
    double upper;
    bool even;  ///< whether the ends, which are ties, round to that number as well
};

/// Of a number of the format that is not negative, or infinity. Every step is exact in double.
Interval rounding_interval(const Format& format, double number) {
    const int fraction_bits = format.significand_bits - 1;
    if (std::isinf(number)) {  // the tie between the largest number and the next power of two goes to the power
        return {std::ldexp(2 - std::ldexp(0.5, -fraction_bits), format.max_exponent), kInfinity, true};
    }
    const int exponent = number == 0 ? format.min_exponent : std::max(std::ilogb(number), format.min_exponent);
    const double unit = std::ldexp(1.0, exponent - fraction_bits);
    const auto significand = static_cast<std::int64_t>(number / unit);
    const bool half_below = significand == std::int64_t{1} << fraction_bits && exponent > format.min_exponent;
    return {number - (half_below ? unit / 4 : unit / 2), number + unit / 2, significand % 2 == 0};
}

TileComparison compare_tile(const Problem& problem, const Tile& tile, std::int64_t head, const Arithmetic& arithmetic) {
    const TileBound bound = bound_tile(load_tile(problem, tile, head), static_cast<double>(problem.scale), arithmetic);
    TileComparison comparison{.tile = tile, .head = head, .worst = {.share = -1}};
    for (std::int64_t row = 0; row < tile.length; ++row) {
        for (std::int64_t dim = 0; dim < problem.head_dim; ++dim) {
            const double computed =
                load_element(problem.o.dtype, problem.o.at(tile.sequence, head, tile.first_row + row, dim));
            const double expected = bound.expected(row, dim);
            const double error = bound.error(row, dim);
            const double share = bound_share(problem.o.dtype, computed, expected, error);
            if (share > 1) ++comparison.wrong;
            if (share > comparison.worst.share) comparison.worst = {row, dim, computed, expected, error, share};
        }
    }
    return comparison;
}

}  // namespace

double bound_share(DType dtype, double computed, double expected, double error) {
    if (!std::isfinite(expected)) return std::isfinite(computed) ? kInfinity : 0;
    if (std::isnan(computed) || std::isnan(error)) return kInfinity;
    if (std::signbit(computed)) {  // a format is symmetric
        computed = -computed;
        expected = -expected;
    }
    const Interval interval = rounding_interval(format_of(dtype), computed);
    if (interval.lower < expected && expected < interval.upper) return 0;
    if (interval.even && (expected == interval.lower || expected == interval.upper)) return 0;
    if (std::isinf(computed)) return kInfinity;
    // At an end that rounds to the neighbour the distance is 0: any error at all explains the number, but none does
    // not.
    const double distance = std::max(interval.lower - expected, expected - interval.upper);
    return error > 0 ? distance / error : kInfinity;
}

Comparison compare_forward(const Problem& problem, const Arithmetic& arithmetic, std::size_t keep) {
    const std::vector<Tile> tiles = list_tiles(problem);
    const auto count = static_cast<std::int64_t>(tiles.size()) * problem.heads;
    Comparison comparison;
    comparison.tiles.resize(static_cast<std::size_t>(count));
    parallel_for(count, [&](std::int64_t i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i / problem.heads)];
        comparison.tiles[static_cast<std::size_t>(i)] = compare_tile(problem, tile, i % problem.heads, arithmetic);
    });

    comparison.shares.reserve(comparison.tiles.size());
    for (const TileComparison& tile : comparison.tiles) {
        comparison.elements += tile.tile.length * problem.head_dim;
        comparison.wrong += tile.wrong;
        comparison.largest_share = std::max(comparison.largest_share, tile.worst.share);
        comparison.shares.push_back(tile.worst.share);
    }
    // Worst first; of equals, the one in order of tile, then head.
    std::stable_sort(comparison.tiles.begin(), comparison.tiles.end(),
                     [](const auto& a, const auto& b) { return a.worst.share > b.worst.share; });
    if (comparison.tiles.size() > keep) comparison.tiles.resize(keep);
    return comparison;
}

}  // namespace block_attention
