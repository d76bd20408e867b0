#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "verify/simulator/engines/tensor_core_plain.h"

/// The factors of a tensor-core product, taken apart once so that each of many products needs little work.
namespace block_attention::simulator {

/// An operand in memory: `count` rows of A, or columns of B, of `depth` elements each. f16 and bf16 elements have 2
/// bytes, tf32 elements 4. Strides are in bytes and may be negative; nothing needs to be aligned.
struct OperandView {
    const std::byte* data = nullptr;
    unsigned count = 0;
    unsigned depth = 0;
    std::ptrdiff_t stride = 0;        ///< From a row of A, or column of B, to the next.
    std::ptrdiff_t depth_stride = 0;  ///< From k to k + 1.
    OperandType type = OperandType::f16;
    bool negate = false;
};

/// Products of one step that are held side by side. Steps with fewer are filled up with zeros, which are no terms.
inline constexpr unsigned kStepTerms = 16;
/// Elements that an instruction of the least depth takes: 32 bytes.
constexpr unsigned step_depth(OperandType type) { return type == OperandType::tf32 ? kStepTerms / 2 : kStepTerms; }
/// Columns of B that are held side by side.
inline constexpr unsigned kBlockColumns = 16;

/// An element is taken apart into a value and an exponent, both relative to the largest exponent of its row or column
/// in its step. That makes products of values exact in float: an element is a value in (-2, 2), and one whose relative
/// exponent is less than kLeastKept has the value 0. The codes of zeros and specials (infinity, NaN) in place of an
/// exponent are such that the sum of two exponents tells what a product is without a carry out of 16 bits:
/// up to kZeroProduct it is zero, above 0 it has a special factor, in between it is its relative exponent.
inline constexpr int kLeastKept = -63;
inline constexpr std::int16_t kZeroCode = -12000;
inline constexpr std::int16_t kSpecialCode = 16000;
inline constexpr int kZeroProduct = -6000;

/// One row of A in one step.
struct RowStep {
    alignas(64) std::array<float, kStepTerms> values;
    alignas(64) std::array<std::uint32_t, kStepTerms> exponents;  ///< Each twice, in the lower and the upper half.
    std::int32_t largest;                                         ///< What the exponents are relative to.
};

/// kBlockColumns columns of B in one step.
struct ColumnsStep {
    alignas(64) std::array<std::array<float, kBlockColumns>, kStepTerms> values;
    /// Of column n in the lower half, of column n + 8 in the upper.
    alignas(64) std::array<std::array<std::uint32_t, kBlockColumns / 2>, kStepTerms> exponents;
    alignas(64) std::array<std::int32_t, kBlockColumns> largest;
};

/// What A and B have in common: their shape, and their elements as bit patterns, negated if so wished.
class PackedOperand {
  public:
    OperandType type() const { return type_; }
    unsigned count() const { return count_; }
    unsigned depth() const { return depth_; }
    unsigned steps() const { return steps_; }
    /// Of a step, the elements that may be other than zero.
    unsigned terms() const { return std::min(depth_, step_depth(type_)); }
    /// The kStepTerms elements of row or column `index` in a step.
    std::span<const std::uint32_t> words(unsigned index, unsigned step) const {
        return std::span(words_).subspan((std::size_t{index} * steps_ + step) * kStepTerms, kStepTerms);
    }

  protected:
    void read(const OperandView& view);

  private:
    OperandType type_ = OperandType::f16;
    unsigned count_ = 0;
    unsigned depth_ = 0;
    unsigned steps_ = 0;
    std::vector<std::uint32_t> words_;
};

/// A, ready to be multiplied. Packing again reuses the memory.
class PackedRows : public PackedOperand {
  public:
    void pack(const OperandView& view);
    const RowStep& row(unsigned index, unsigned step) const { return rows_[std::size_t{index} * steps() + step]; }

  private:
    std::vector<RowStep> rows_;
};

/// B, ready to be multiplied. Columns beyond the last are zeros.
class PackedColumns : public PackedOperand {
  public:
    void pack(const OperandView& view);
    unsigned blocks() const { return (count() + kBlockColumns - 1) / kBlockColumns; }
    const ColumnsStep& columns(unsigned block, unsigned step) const {
        return columns_[std::size_t{step} * blocks() + block];
    }

  private:
    std::vector<ColumnsStep> columns_;
};

}  // namespace block_attention::simulator
