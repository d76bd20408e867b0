#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "reference/launch.h"
#include "reference/problem.h"

namespace block_attention {

/// How a stage forms a sum of products, seen as a chain of steps: s <- round(s + p_1 + ... + p_n).
/// The bound (verify/bound.h) follows the chain's partial sums.
struct ProductArithmetic {
    int terms_per_step = 1;      ///< 1 for an FMA chain, 16 for a tensor-core instruction of K = 16
    double step_roundoff = 0;    ///< relative to the step's result: 2^-24 for an FMA, 2^-23 where it truncates
    double align_roundoff = 0;   ///< of each term, relative to the step's largest: 0 for an FMA
    double smallest_normal = 0;  ///< of the factors' type, 2^-14 for fp16: a smaller factor is aligned as if this large
};

/// What a stage rounds, and how: all that the derived error bound needs to know of it.
struct Arithmetic {
    ProductArithmetic qk;            ///< S = Q K^T
    ProductArithmetic pv;            ///< O = P V
    double logit_roundings = 0;      ///< roundings of 2^-24 of the scaled logit x = scale * s
    double exponent_roundings = 0;   ///< roundings of 2^-24 of the exponent log2(e) * (x - max)
    double exp2_relative_error = 0;  ///< of the exponential for an exact argument
    double exp2_absolute_error = 0;  ///< below the smallest exponential that is not flushed to zero
    double p_roundoff = 0;           ///< relative rounding of P before the second product; 0 if it stays in fp32
    double p_underflow = 0;          ///< absolute rounding of P below that type's normal numbers: 2^-25 for fp16
    bool sum_of_rounded_p = false;   ///< whether the row sum adds P after that rounding or before
    double division_roundings = 1;   ///< roundings of 2^-24 of O = (P V) / sum
};

//! [stage]
/// A way to compute block-diagonal attention: what it is called, what it serves, what it launches.
/// A stage is data; it knows no device. The oracle is a stage that runs on the host.
struct Stage {
    std::string_view name;
    std::string_view summary;  ///< one line
    /// The launches that solve a valid problem, or why this stage doesn't serve it.
    PlanResult (*plan)(const Problem& problem) = nullptr;
    /// Host stages only: solves a valid problem that `plan` did not refuse. The plan then has no launches.
    void (*run_on_host)(const Problem& problem) = nullptr;
    /// How the stage rounds when it serves that problem.
    Arithmetic (*arithmetic)(const Problem& problem) = nullptr;
};
//! [stage]

}  // namespace block_attention
