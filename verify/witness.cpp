#include "verify/witness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "reference/parallel.h"

namespace block_attention {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr double kMostPairs = 1 << 24;

/// First token and end of a sequence on the token axis.
std::pair<std::int64_t, std::int64_t> tokens_of(const Problem& problem, std::int64_t sequence) {
    if (!problem.jagged()) return {0, problem.tokens};
    const auto index = static_cast<std::size_t>(sequence);
    return {problem.offsets[index], problem.offsets[index + 1]};
}

double query_key_pairs(const Problem& problem) {
    double pairs = 0;
    for (std::int64_t s = 0; s < problem.sequences; ++s) {
        const auto [first, end] = tokens_of(problem, s);
        pairs += std::pow(static_cast<double>(end - first), 2);
    }
    return pairs * static_cast<double>(problem.heads);
}

/// Rows of one sequence and head, a token a row.
class Rows {
  public:
    Rows(const Problem& problem, Operand operand, std::int64_t sequence, std::int64_t head, std::int64_t first,
         std::int64_t end)
        : first_(first), dim_(problem.head_dim) {
        const TensorView& view = problem.view(operand);
        for (std::int64_t t = first; t < end; ++t) {
            for (std::int64_t d = 0; d < dim_; ++d) {
                elements_.push_back(static_cast<long double>(load_element(view.dtype, view.at(sequence, head, t, d))));
            }
        }
    }
    /// The elements of one token.
    [[nodiscard]] const long double* row(std::int64_t token) const {
        return elements_.data() + (token - first_) * dim_;
    }

  private:
    std::int64_t first_;
    std::int64_t dim_;
    std::vector<long double> elements_;
};

/// A logit of one query, and how far off an evaluation in double may be.
struct Score {
    long double logit = -kInfinity;
    long double error = 0;
    bool masked = true;
};

/// n roundings in double.
long double roundings(std::int64_t n) { return static_cast<long double>(n) * std::ldexp(1.0L, -53); }

/// One row of S before the softmax: a query against the keys [first, end) of the sequence that starts at `start`.
std::vector<Score> score_row(const Problem& problem, const Rows& q, const Rows& k, std::int64_t query,
                             std::int64_t start, std::int64_t first, std::int64_t end) {
    const auto block_of = [&](std::int64_t token) { return (token - start) / problem.block_size; };
    const auto scale = static_cast<long double>(problem.scale);
    std::vector<Score> scores(static_cast<std::size_t>(end - first));
    for (std::int64_t key = first; key < end; ++key) {
        if (block_of(query) != block_of(key)) continue;
        long double sum = 0;
        double magnitude = 0;
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
            const long double product = q.row(query)[d] * k.row(key)[d];
            sum += product;
            magnitude += std::abs(static_cast<double>(product));
        }
        // A sum of head_dim products in any order, and the scale: each term is rounded at most head_dim + 1 times.
        scores[static_cast<std::size_t>(key - first)] = {
            scale * sum, roundings(problem.head_dim + 1) * std::abs(scale) * magnitude, false};
    }
    return scores;
}

/// A key's share in a query's row of P, before the division by the sum.
struct Weight {
    long double value = 0;
    long double error = 0;
};

/// Below this an exponential in double may be flushed.
constexpr long double kUnderflow = 0x1p-1020L;

std::vector<Weight> softmax_weights(const std::vector<Score>& scores) {
    long double largest = -kInfinity;
    for (const Score& score : scores) largest = std::max(largest, score.logit);
    std::vector<Weight> weights(scores.size());
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const long double below = largest - scores[j].logit;
        weights[j].value = std::exp(-below);
        if (scores[j].masked) continue;
        // Of the argument: the logit's error and the subtraction's; of the exponential itself: 4 roundings.
        const long double relative = scores[j].error + roundings(1) * below + roundings(4);
        weights[j].error = weights[j].value * relative + kUnderflow;
    }
    return weights;
}

/// Softmax and P V of one query: appends a row to `tile`.
void append_row(const Problem& problem, const std::vector<Score>& scores, const Rows& v, std::int64_t first,
                WitnessTile& tile) {
    const std::vector<Weight> weights = softmax_weights(scores);
    Weight sum;
    std::int64_t terms = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
        sum.value += weights[j].value;
        sum.error += weights[j].error;
        terms += scores[j].masked ? 0 : 1;
    }
    const auto dim = static_cast<std::size_t>(problem.head_dim);
    std::vector<long double> numerator(dim);
    std::vector<double> magnitude(dim);  // of the numerator's terms
    std::vector<double> error(dim);      // that the weights' errors make in the numerator
    for (std::size_t j = 0; j < weights.size(); ++j) {
        if (scores[j].masked) continue;  // its weight is 0, but 0 times a NaN of another tile is not
        const long double* values = v.row(first + static_cast<std::int64_t>(j));
        const auto weight = static_cast<double>(weights[j].value);
        const auto weight_error = static_cast<double>(weights[j].error);
        for (std::size_t d = 0; d < dim; ++d) {
            const double value = std::abs(static_cast<double>(values[d]));
            numerator[d] += weights[j].value * values[d];
            magnitude[d] += weight * value;
            error[d] += weight_error * value;
        }
    }
    // Numerator and sum are rounded at most once a term each, then comes the division. Twice that, for terms of second
    // order, for the rounding of this function itself and for that of `expected` to double.
    const auto total = static_cast<double>(sum.value);
    const auto relative = static_cast<double>(sum.error / sum.value + roundings(2 * terms + 2));
    for (std::size_t d = 0; d < dim; ++d) {
        tile.expected.push_back(static_cast<double>(numerator[d] / sum.value));
        tile.error.push_back(2 * (error[d] + magnitude[d] * relative) / total);
    }
}

/// Evaluates a tile from the keys of its whole sequence, or of the tile alone.
WitnessTile evaluate(const Problem& problem, const Tile& tile, std::int64_t head, bool dense) {
    const auto sequence = static_cast<std::int64_t>(tile.sequence);
    const std::int64_t tile_end = tile.first_row + tile.length;
    const auto [start, sequence_end] = tokens_of(problem, sequence);
    const std::int64_t first = dense ? start : tile.first_row;
    const std::int64_t end = dense ? sequence_end : tile_end;
    const Rows q(problem, Operand::q, sequence, head, tile.first_row, tile_end);
    const Rows k(problem, Operand::k, sequence, head, first, end);
    const Rows v(problem, Operand::v, sequence, head, first, end);
    WitnessTile result;
    for (std::int64_t query = tile.first_row; query < tile_end; ++query) {
        append_row(problem, score_row(problem, q, k, query, start, first, end), v, first, result);
    }
    return result;
}

TileComparison compare_tile(const Problem& problem, const Tile& tile, std::int64_t head, bool dense) {
    const WitnessTile witness = evaluate(problem, tile, head, dense);
    TileComparison comparison{.tile = tile, .head = head, .worst = {.share = -1}};
    std::size_t index = 0;
    for (std::int64_t row = 0; row < tile.length; ++row) {
        for (std::int64_t d = 0; d < problem.head_dim; ++d, ++index) {
            const double computed =
                load_element(problem.dtype, problem.o.at(tile.sequence, head, tile.first_row + row, d));
            const double expected = witness.expected[index];
            const double error = witness.error[index];
            const double share = bound_share(problem.dtype, computed, expected, error);
            if (share > 1) ++comparison.wrong;
            if (share > comparison.worst.share) {
                comparison.worst = {
                    .row = row, .dim = d, .computed = computed, .expected = expected, .error = error, .share = share};
            }
        }
    }
    return comparison;
}

}  // namespace

WitnessTile witness_tile(const Problem& problem, const Tile& tile, std::int64_t head) {
    return evaluate(problem, tile, head, query_key_pairs(problem) <= kMostPairs);
}

Comparison compare_with_witness(const Problem& problem, std::size_t keep) {
    const std::vector<Tile> tiles = list_tiles(problem);
    const bool dense = query_key_pairs(problem) <= kMostPairs;
    std::vector<TileComparison> all(tiles.size() * static_cast<std::size_t>(problem.heads));
    parallel_for(static_cast<std::int64_t>(all.size()), [&](std::int64_t i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i / problem.heads)];
        all[static_cast<std::size_t>(i)] = compare_tile(problem, tile, i % problem.heads, dense);
    });

    Comparison comparison;
    for (const TileComparison& tile : all) {
        comparison.elements += tile.tile.length * problem.head_dim;
        comparison.wrong += tile.wrong;
        comparison.largest_share = std::max(comparison.largest_share, tile.worst.share);
        comparison.shares.push_back(tile.worst.share);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const TileComparison& a, const TileComparison& b) { return a.worst.share > b.worst.share; });
    all.resize(std::min(keep, all.size()));
    comparison.tiles = std::move(all);
    return comparison;
}

}  // namespace block_attention
