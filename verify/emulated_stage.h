#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/dtype.h"
#include "reference/exp2.h"
#include "reference/oracle.h"
#include "reference/problem.h"
#include "reference/stage.h"
#include "reference/tiles.h"

namespace block_attention {

/// How an emulated stage forms a sum of products.
enum class Products : std::uint8_t {
    fma,          ///< one fused multiply-add a term, in fp32
    fma_fp16,     ///< the same with every partial sum rounded to fp16: too coarse, for tests of what must be caught
    tensor_core,  ///< 16 terms a step, aligned and truncated as Hopper's tensor cores do; fp16 and bf16 only
};

/// A stage's arithmetic, done on the host for the tests of the bound and the comparison. As it stands, the naive
/// stage's: fp32 throughout, one rounding an operation.
struct EmulatedStage {
    Products qk = Products::fma;
    Products pv = Products::fma;
    std::optional<DType> p_type = std::nullopt;  ///< what P is rounded to before the second product
    bool sum_of_rounded_p = false;
    bool subtract_max = true;
    float (*exp2)(float) = exp2_exact;
};

/// O = softmax(scale * Q K^T) V by the stage, before O is rounded to its type: each element a float. `dtype` is the
/// type of the operands. K and V may have fewer rows than Q.
TileMatrix emulate(const EmulatedStage& stage, DType dtype, const TileOperands& tile, float scale);

/// What the bound must know of the stage, for operands of that type.
Arithmetic arithmetic_of(const EmulatedStage& stage, DType dtype);

/// A matrix of independent normal numbers with that standard deviation, rounded to the type.
TileMatrix random_matrix(DType dtype, Eigen::Index rows, Eigen::Index columns, double deviation, std::uint64_t seed);

/// A tile whose logits, with the default scale, have that standard deviation; V has 1.
TileOperands random_tile(DType dtype, Eigen::Index length, Eigen::Index dim, double logit_deviation,
                         std::uint64_t seed);

/// A forward problem with its own memory, every tensor laid out as [sequences, tokens, heads, dim] or, jagged,
/// [tokens, heads, dim]. Blocks of 64 tokens, the default scale, random Q, K and V of deviation 1; O is 0.
class OwnedProblem {
  public:
    OwnedProblem(DType dtype, std::int64_t sequences, std::int64_t heads, std::int64_t tokens, std::int64_t dim,
                 std::uint64_t seed, const std::vector<std::int64_t>& offsets = {});
    OwnedProblem(const OwnedProblem&) = delete;
    OwnedProblem& operator=(const OwnedProblem&) = delete;

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] TileOperands operands(const Tile& tile, std::int64_t head) const;
    /// The elements of a tile of O.
    [[nodiscard]] TileMatrix output(const Tile& tile, std::int64_t head) const;
    /// Rounds `values` to the type and stores them in a tile of an operand.
    void store(Operand operand, const Tile& tile, std::int64_t head, const TileMatrix& values);

  private:
    Problem problem_;
    std::vector<std::vector<std::byte>> memory_;
};

}  // namespace block_attention
