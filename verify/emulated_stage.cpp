#include "verify/emulated_stage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace block_attention {
namespace {

using Index = Eigen::Index;
using Floats = std::vector<float>;

constexpr Index kTensorCoreTerms = 16;

/// Toward zero.
float truncate(double value) {
    const auto nearest = static_cast<float>(value);
    return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F) : nearest;
}

/// One tensor-core instruction of up to 16 terms: sum + a . b, as measured on H200. Each term is truncated to 25 bits
/// below the largest exponent, where a product's exponent is the sum of its factors'; the sum is exact, then truncated.
float tensor_core_step(float sum, const float* a, const float* b, Index terms, DType dtype) {
    constexpr int kSmallestExponent = -133;
    constexpr int kAlignmentBits = 25;
    const int smallest_factor = format_of(dtype).min_exponent;
    std::array<double, kTensorCoreTerms> products{};
    auto total = static_cast<double>(sum);
    int exponent = sum == 0 ? kSmallestExponent : std::max(std::ilogb(sum), kSmallestExponent);
    for (Index k = 0; k < terms; ++k) {
        products[k] = static_cast<double>(a[k]) * static_cast<double>(b[k]);
        total += products[k];
        if (products[k] == 0 || !std::isfinite(products[k])) continue;
        const int factors = std::max(std::ilogb(a[k]), smallest_factor) + std::max(std::ilogb(b[k]), smallest_factor);
        exponent = std::max(exponent, factors);
    }
    if (!std::isfinite(total)) return static_cast<float>(total);

    const double place = std::ldexp(1.0, exponent - kAlignmentBits);
    double aligned = std::trunc(static_cast<double>(sum) / place);
    for (Index k = 0; k < terms; ++k) aligned += std::trunc(products[k] / place);
    return truncate(aligned * place);
}

float dot(Products products, const Floats& a, const Floats& b, DType dtype) {
    const auto terms = static_cast<Index>(a.size());
    float sum = 0;
    if (products == Products::tensor_core) {
        for (Index k = 0; k < terms; k += kTensorCoreTerms) {
            sum = tensor_core_step(sum, &a[k], &b[k], std::min(kTensorCoreTerms, terms - k), dtype);
        }
        return sum;
    }
    for (Index k = 0; k < terms; ++k) {
        sum = std::fma(a[k], b[k], sum);
        if (products == Products::fma_fp16) sum = static_cast<float>(round_to(DType::fp16, static_cast<double>(sum)));
    }
    return sum;
}

/// The rows of a matrix as floats, which its elements are.
std::vector<Floats> rows_of(const TileMatrix& matrix) {
    std::vector<Floats> rows(static_cast<std::size_t>(matrix.rows()));
    for (Index i = 0; i < matrix.rows(); ++i) {
        for (Index j = 0; j < matrix.cols(); ++j) rows[i].push_back(static_cast<float>(matrix(i, j)));
    }
    return rows;
}

ProductArithmetic arithmetic_of(Products products, DType dtype) {
    switch (products) {
        case Products::fma:
            return {.terms_per_step = 1, .step_roundoff = 0x1p-24};
        case Products::fma_fp16:
            return {.terms_per_step = 1, .step_roundoff = 0x1p-11 + 0x1p-24};
        case Products::tensor_core:
            return {.terms_per_step = kTensorCoreTerms,
                    .step_roundoff = 0x1p-23,
                    .align_roundoff = 0x1p-25,
                    .smallest_normal = std::ldexp(1.0, format_of(dtype).min_exponent)};
    }
    return {};
}

}  // namespace

TileMatrix emulate(const EmulatedStage& stage, DType dtype, const TileOperands& tile, float scale) {
    const std::vector<Floats> q = rows_of(tile.q);
    const std::vector<Floats> k = rows_of(tile.k);
    const std::vector<Floats> v_columns = rows_of(tile.v.transpose());
    TileMatrix o(tile.q.rows(), tile.v.cols());
    Floats p(k.size());
    for (Index i = 0; i < o.rows(); ++i) {
        float max = -std::numeric_limits<float>::infinity();
        for (std::size_t j = 0; j < k.size(); ++j) {
            p[j] = scale * dot(stage.qk, q[i], k[j], dtype);
            max = std::max(max, p[j]);
        }
        if (!stage.subtract_max) max = 0;
        float sum = 0;
        for (float& weight : p) {
            weight = stage.exp2((weight - max) * kLog2e);
            const float unrounded = weight;
            if (stage.p_type) weight = static_cast<float>(round_to(*stage.p_type, static_cast<double>(weight)));
            sum += stage.sum_of_rounded_p ? weight : unrounded;
        }
        for (Index d = 0; d < o.cols(); ++d) {
            o(i, d) = static_cast<double>(dot(stage.pv, p, v_columns[d], dtype) / sum);
        }
    }
    return o;
}

Arithmetic arithmetic_of(const EmulatedStage& stage, DType dtype) {
    Arithmetic arithmetic{.qk = arithmetic_of(stage.qk, dtype),
                          .pv = arithmetic_of(stage.pv, dtype),
                          .logit_roundings = 1,
                          .exponent_roundings = 3,
                          .exp2_relative_error = kExp2RelativeError,
                          .exp2_absolute_error = 0x1p-126,
                          .sum_of_rounded_p = stage.sum_of_rounded_p,
                          .division_roundings = 1};
    if (stage.p_type) {
        const Format format = format_of(*stage.p_type);
        arithmetic.p_roundoff = std::ldexp(1.0, -format.significand_bits);
        arithmetic.p_underflow = std::ldexp(1.0, format.min_exponent - format.significand_bits);
    }
    return arithmetic;
}

TileMatrix random_matrix(DType dtype, Eigen::Index rows, Eigen::Index columns, double deviation, std::uint64_t seed) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal(0, deviation);
    return TileMatrix::NullaryExpr(rows, columns, [&] { return round_to(dtype, normal(generator)); });
}

TileOperands random_tile(DType dtype, Eigen::Index length, Eigen::Index dim, double logit_deviation,
                         std::uint64_t seed) {
    const double factor = std::sqrt(logit_deviation);
    return {random_matrix(dtype, length, dim, factor, 3 * seed),
            random_matrix(dtype, length, dim, factor, 3 * seed + 1),
            random_matrix(dtype, length, dim, 1, 3 * seed + 2)};
}

OwnedProblem::OwnedProblem(DType dtype, std::int64_t sequences, std::int64_t heads, std::int64_t tokens,
                           std::int64_t dim, std::uint64_t seed, const std::vector<std::int64_t>& offsets) {
    problem_.dtype = dtype;
    problem_.sequences = sequences;
    problem_.heads = heads;
    problem_.head_dim = dim;
    problem_.block_size = 64;
    problem_.tokens = tokens;
    problem_.offsets = offsets;
    problem_.scale = default_scale(dim);
    const std::int64_t elements = (problem_.jagged() ? 1 : sequences) * tokens * heads * dim;
    for (const Operand operand : {Operand::q, Operand::k, Operand::v, Operand::o}) {
        std::vector<std::byte>& memory = memory_.emplace_back(static_cast<std::size_t>(elements * size_of(dtype)));
        problem_.view(operand) = {memory.data(), dtype,
                                  problem_.jagged() ? strides_thd(heads, dim) : strides_bshd(heads, tokens, dim)};
    }
    for (const Tile& tile : list_tiles(problem_)) {
        for (std::int64_t head = 0; head < heads; ++head) {
            const TileOperands random = random_tile(dtype, tile.length, dim, 1, seed++);
            store(Operand::q, tile, head, random.q);
            store(Operand::k, tile, head, random.k);
            store(Operand::v, tile, head, random.v);
        }
    }
}

TileOperands OwnedProblem::operands(const Tile& tile, std::int64_t head) const {
    return load_tile(problem_, tile, head);
}

TileMatrix OwnedProblem::output(const Tile& tile, std::int64_t head) const {
    return TileMatrix::NullaryExpr(tile.length, problem_.head_dim, [&](Index row, Index dim) {
        return load_element(problem_.dtype, problem_.o.at(tile.sequence, head, tile.first_row + row, dim));
    });
}

void OwnedProblem::store(Operand operand, const Tile& tile, std::int64_t head, const TileMatrix& values) {
    const TensorView& view = problem_.view(operand);
    for (Index row = 0; row < values.rows(); ++row) {
        for (Index dim = 0; dim < values.cols(); ++dim) {
            store_element(view.dtype, view.at(tile.sequence, head, tile.first_row + row, dim),
                          round_to(view.dtype, values(row, dim)));
        }
    }
}

}  // namespace block_attention
