#include "verify/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace block_attention {
namespace {

using Index = Eigen::Index;
using Row = Eigen::Array<double, 1, Eigen::Dynamic>;

constexpr double kFloatUnit = 0x1p-24;
constexpr double kDoubleUnit = 0x1p-53;
/// What one operation may lose below fp32's normal numbers: rounding to a multiple of 2^-149, and the alignment of
/// terms as small as that.
constexpr double kUnderflow = 0x1p-148;
/// Covers the rounding of this file's own sums, all of whose terms are positive.
constexpr double kEvaluation = 1 + 0x1p-20;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// (1-u)^-n - 1: the largest relative change by n roundings, whether they multiply by 1 + t or divide by it, |t| <= u.
double roundings(double count) { return std::expm1(-count * std::log1p(-kFloatUnit)); }

/// The logarithm of the largest change by one such rounding, with a unit of its own.
double log_rounding(double unit) { return -std::log1p(-unit); }

/// What the evaluation of sums and exponentials in double may change, relative to the sum of all |terms|.
double double_sum_error(Index terms) { return kDoubleUnit * (4.0 * static_cast<double>(terms) + 32); }

/// What the alignment of a step's terms may lose, relative to the largest of them.
double alignment(const ProductArithmetic& arithmetic) {
    return arithmetic.align_roundoff * (arithmetic.terms_per_step + 1);
}

/// Sums of products, one a column, followed through the steps of a stage's chain.
class Chains {
  public:
    explicit Chains(Index columns) : sum(columns), partials(columns), largest(columns) {}

    Row sum;           ///< of all products
    Row partials;      ///< over the steps, the sum of |partial sum after the step|
    Row largest;       ///< over the steps, the sum of the largest |term| that the step aligns; 0 if nothing is aligned
    double steps = 0;  ///< how many

    /// Adds coefficients[k] * rows(k, column) in order of k.
    void follow(const double* coefficients, const TileMatrix& rows, const ProductArithmetic& arithmetic) {
        constexpr int kWidth = 8;  // columns whose sums stay in registers
        Index column = 0;
        for (; column + kWidth <= rows.cols(); column += kWidth) {
            follow_columns<kWidth>(coefficients, rows, arithmetic, column);
        }
        for (; column < rows.cols(); ++column) follow_columns<1>(coefficients, rows, arithmetic, column);
        steps = std::ceil(static_cast<double>(rows.rows()) / arithmetic.terms_per_step);
    }

    /// The largest factor by which the steps enlarge an error made on the way.
    [[nodiscard]] double growth(const ProductArithmetic& arithmetic) const {
        return std::exp(steps * (std::log1p(alignment(arithmetic)) + log_rounding(arithmetic.step_roundoff)));
    }

  private:
    template <int kWidth>
    void follow_columns(const double* coefficients, const TileMatrix& rows, const ProductArithmetic& arithmetic,
                        Index column) {
        using Columns = Eigen::Array<double, 1, kWidth>;
        const bool aligns = arithmetic.align_roundoff != 0;
        const double normal = arithmetic.smallest_normal;
        const double* row = rows.data() + column;
        Columns partial = Columns::Zero();
        Columns partials_sum = Columns::Zero();
        Columns largest_sum = Columns::Zero();
        for (Index first = 0; first < rows.rows(); first += arithmetic.terms_per_step) {
            const Index end = std::min<Index>(first + arithmetic.terms_per_step, rows.rows());
            Columns aligned = partial.abs();
            for (Index k = first; k < end; ++k, row += rows.cols()) {
                const Eigen::Map<const Columns> factors(row);
                partial += coefficients[k] * factors;
                if (aligns) aligned = aligned.max((std::abs(coefficients[k]) + normal) * (factors.abs() + normal));
            }
            partials_sum += partial.abs();
            if (aligns) largest_sum += aligned;
        }
        sum.template segment<kWidth>(column) = partial;
        partials.template segment<kWidth>(column) = partials_sum;
        largest.template segment<kWidth>(column) = largest_sum;
    }
};

/// One query's logits x.
struct Logits {
    Row value;
    Row error;   ///< how far the stage's logit may be from x
    Row oracle;  ///< how far evaluations of x in double may be apart

    explicit Logits(Index keys) : value(keys), error(keys), oracle(keys) {}
};

/// One query's weights exp(x - max), in units of exp(max - the stage's own max).
struct Weights {
    Row value;
    Row error;           ///< how far the weight that the row sum adds may be from `value`
    Row rounding;        ///< how far the weight that multiplies V may be from the weight that the row sum adds
    double sum = 0;      ///< the least that the row sum can add up to
    double inverse = 1;  ///< the most that 1 can be in those units

    explicit Weights(Index keys) : value(keys), error(keys), rounding(keys) {}
};

void weigh(const Logits& logits, const Arithmetic& arithmetic, Weights& weights) {
    const Index keys = logits.value.size();
    const double max = logits.value.maxCoeff();
    double max_error = 0;
    for (Index j = 0; j < keys; ++j) {
        if (logits.value(j) != -kInfinity) max_error = std::max(max_error, logits.error(j) + logits.oracle(j));
    }
    weights.inverse = std::exp(max_error);

    const double exponent_error = roundings(arithmetic.exponent_roundings) + 4 * kDoubleUnit;
    double relative = log_rounding(arithmetic.exp2_relative_error) + double_sum_error(keys);
    double absolute = arithmetic.exp2_absolute_error + kUnderflow;
    double p_roundoff = arithmetic.p_roundoff;
    double p_underflow = p_roundoff == 0 ? 0 : arithmetic.p_underflow;
    if (arithmetic.sum_of_rounded_p) {  // one weight for V and the sum: its rounding belongs to the weight's own error
        relative += log_rounding(p_roundoff);
        absolute += p_roundoff * absolute + p_underflow;
        p_roundoff = p_underflow = 0;
    }
    absolute *= weights.inverse;
    p_underflow *= weights.inverse;

    weights.sum = 0;
    for (Index j = 0; j < keys; ++j) {
        if (logits.value(j) == -kInfinity) {  // the stage's weight is exactly 0 as well
            weights.value(j) = weights.error(j) = weights.rounding(j) = 0;
            continue;
        }
        const double below = max - logits.value(j);
        const double off = logits.error(j) + logits.oracle(j);
        const double log_error = off + exponent_error * (below + off + max_error) + relative;
        const double weight = std::exp(-below);
        const double change = std::expm1(log_error);
        weights.value(j) = weight;
        // A weight that underflows times a change that overflows is taken by logarithms.
        weights.error(j) = (log_error < 1 ? weight * change : std::exp(log_error - below)) + absolute;
        weights.rounding(j) = p_roundoff * (weight + weights.error(j)) + p_underflow;
        weights.sum += std::max(weight / (1 + change) - absolute, 0.0);
    }
}

}  // namespace

TileBound bound_tile(const TileOperands& tile, double scale, const Arithmetic& arithmetic) {
    const Index keys = tile.k.rows();
    const Index dim = tile.k.cols();
    TileBound bound{attention(tile, scale), TileMatrix(keys, dim)};

    const TileMatrix k_transposed = tile.k.transpose();
    const Row k_norms = tile.k.rowwise().norm().transpose();
    const double logit_oracle = 4 * static_cast<double>(dim + 2) * kDoubleUnit * std::abs(scale);
    const double logit_change = roundings(arithmetic.logit_roundings);
    const double quotient_change =
        roundings(arithmetic.division_roundings + static_cast<double>(keys - 1)) + double_sum_error(keys);
    const double qk_alignment = alignment(arithmetic.qk);
    const double pv_alignment = alignment(arithmetic.pv);

    Chains qk(keys);
    Chains pv(dim);
    Logits logits(keys);
    Weights weights(keys);
    Row spread(dim);
    Row chain(dim);
    for (Index i = 0; i < keys; ++i) {
        const auto expected = bound.expected.row(i).array();

        qk.follow(tile.q.row(i).data(), k_transposed, arithmetic.qk);
        logits.value = scale * qk.sum;
        logits.error = std::abs(scale) * qk.growth(arithmetic.qk) *
                       (arithmetic.qk.step_roundoff * qk.partials + qk_alignment * qk.largest + qk.steps * kUnderflow);
        logits.error += logit_change * (logits.value.abs() + logits.error) + arithmetic.logit_roundings * kUnderflow;
        logits.oracle = logit_oracle * tile.q.row(i).norm() * k_norms;
        weigh(logits, arithmetic, weights);

        //! [element]
        // How far the weights' errors move the weighted mean.
        spread.setZero();
        for (Index j = 0; j < keys; ++j) {
            const auto value = tile.v.row(j).array();
            spread += weights.error(j) * (value - expected).abs();
            if (weights.rounding(j) != 0) spread += weights.rounding(j) * value.abs();
        }

        // How far the products' sum is from the stage's weights' exact one. Its partial sums are those of the exact
        // weights, off by no more than `moved`.
        pv.follow(weights.value.data(), tile.v, arithmetic.pv);
        const double error_sum = weights.error.sum();
        const double moved_floor = arithmetic.pv.smallest_normal * (error_sum + weights.rounding.sum());
        const auto moved = spread + expected.abs() * error_sum;
        chain = pv.growth(arithmetic.pv) *
                (arithmetic.pv.step_roundoff * (pv.partials + pv.steps * moved) +
                 pv_alignment * (weights.inverse * pv.largest + pv.steps * (moved + moved_floor)) +
                 pv.steps * weights.inverse * kUnderflow);

        bound.error.row(i) = kEvaluation * ((1 + quotient_change) * (spread + chain) / weights.sum +
                                            quotient_change * expected.abs() + 2 * kUnderflow);
        //! [element]
    }
    return bound;
}

}  // namespace block_attention
