#include "reference/oracle.h"

#include <cmath>

#include "reference/parallel.h"

namespace block_attention {
namespace {

TileMatrix load_rows(const Problem& problem, const TensorView& view, const Tile& tile, std::int64_t head) {
    TileMatrix rows(tile.length, problem.head_dim);
    for (std::int64_t t = 0; t < tile.length; ++t) {
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
            rows(t, d) = load_element(view.dtype, view.at(tile.sequence, head, tile.first_row + t, d));
        }
    }
    return rows;
}

void store_rows(const Problem& problem, const TensorView& view, const Tile& tile, std::int64_t head,
                const TileMatrix& rows) {
    for (std::int64_t t = 0; t < tile.length; ++t) {
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
            store_element(view.dtype, view.at(tile.sequence, head, tile.first_row + t, d),
                          round_to(view.dtype, rows(t, d)));
        }
    }
}

PlanResult plan_oracle(const Problem& problem) {
    if (problem.pass != Pass::forward) return Refusal{"the oracle computes the forward pass only"};
    if (problem.rotary) return Refusal{"the oracle does not apply a rotary embedding"};
    return Plan{};
}

/// Everything in double: one multiply and one add a product term, roundings of 2^-53.
Arithmetic oracle_arithmetic(const Problem&) {
    const double u = std::ldexp(1.0, -29);  // 2^-53 in units of the 2^-24 that the counts below are multiplied by
    const ProductArithmetic product{.terms_per_step = 1, .step_roundoff = std::ldexp(1.0, -52), .align_roundoff = 0};
    return {.qk = product,
            .pv = product,
            .logit_roundings = u,
            .exponent_roundings = 2 * u,
            .exp2_relative_error = std::ldexp(1.0, -52),
            .exp2_absolute_error = 0,
            .p_roundoff = 0,
            .sum_of_rounded_p = false,
            .division_roundings = u};
}

}  // namespace

TileOperands load_tile(const Problem& problem, const Tile& tile, std::int64_t head) {
    return {load_rows(problem, problem.q, tile, head), load_rows(problem, problem.k, tile, head),
            load_rows(problem, problem.v, tile, head)};
}

//! [definition]
TileMatrix attention(const TileOperands& tile, double scale) {
    TileMatrix s = scale * tile.q * tile.k.transpose();                 // logits, one row a query
    s.colwise() -= s.rowwise().maxCoeff().eval();                       // softmax ignores a row's shift
    const TileMatrix p = s.array().exp();                               // 1 at the row's maximum, less elsewhere
    return (p * tile.v).array().colwise() / p.rowwise().sum().array();  // weighted mean of the rows of V
}
//! [definition]

void run_oracle(const Problem& problem) {
    const std::vector<Tile> tiles = list_tiles(problem);
    parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i)];
        for (std::int64_t head = 0; head < problem.heads; ++head) {
            store_rows(problem, problem.o, tile, head,
                       attention(load_tile(problem, tile, head), static_cast<double>(problem.scale)));
        }
    });
}

const Stage& oracle_stage() {
    static const Stage kStage{.name = "oracle",
                              .summary = "the definition, in double with Eigen, on the host",
                              .plan = plan_oracle,
                              .run_on_host = run_oracle,
                              .arithmetic = oracle_arithmetic};
    return kStage;
}

}  // namespace block_attention
