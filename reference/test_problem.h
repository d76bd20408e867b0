#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/problem.h"

namespace block_attention {

/// A small forward problem with its own dense storage, for tests: Q, K, V and O one behind another in one buffer.
class TestProblem {
  public:
    TestProblem(DType dtype, std::int64_t sequences, std::int64_t heads, std::int64_t tokens, std::int64_t head_dim,
                std::int64_t block_size)
        : TestProblem(dtype, sequences, heads, tokens, head_dim, block_size, {}) {}

    /// Jagged; `offsets` ends at the number of tokens.
    TestProblem(DType dtype, std::vector<std::int64_t> offsets, std::int64_t heads, std::int64_t head_dim,
                std::int64_t block_size)
        : TestProblem(dtype, static_cast<std::int64_t>(offsets.size()) - 1, heads, offsets.back(), head_dim, block_size,
                      offsets) {}

    Problem problem;

    /// Normal numbers times `spread`, rounded to the type.
    void fill_normal(unsigned seed, double spread = 1) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal(0, spread);
        for (const TensorView& view : {problem.q, problem.k, problem.v}) {
            for (std::int64_t i = 0; i < elements_; ++i) set(view, i, normal(random));
        }
    }
    void fill(Operand operand, double value) {
        for (std::int64_t i = 0; i < elements_; ++i) set(problem.view(operand), i, value);
    }
    /// Element `i` of a tensor in storage order.
    void set(const TensorView& view, std::int64_t i, double value) {
        store_element(view.dtype, static_cast<char*>(view.data) + i * size_of(view.dtype), round_to(view.dtype, value));
    }
    [[nodiscard]] double get(Operand operand, std::int64_t s, std::int64_t h, std::int64_t t, std::int64_t d) const {
        const TensorView& view = problem.view(operand);
        return load_element(view.dtype, view.at(s, h, t, d));
    }
    [[nodiscard]] std::int64_t elements() const { return elements_; }

  private:
    TestProblem(DType dtype, std::int64_t sequences, std::int64_t heads, std::int64_t tokens, std::int64_t head_dim,
                std::int64_t block_size, std::vector<std::int64_t> offsets) {
        problem.dtype = dtype;
        problem.sequences = sequences;
        problem.heads = heads;
        problem.tokens = tokens;
        problem.head_dim = head_dim;
        problem.block_size = block_size;
        problem.offsets = std::move(offsets);
        problem.scale = default_scale(head_dim);
        elements_ = (problem.jagged() ? 1 : sequences) * heads * tokens * head_dim;
        const auto bytes = static_cast<std::size_t>(elements_ * size_of(dtype));
        storage_.resize(4 * bytes + 1);
        const Strides strides = problem.jagged() ? strides_thd(heads, head_dim) : strides_bhsd(heads, tokens, head_dim);
        std::byte* next = storage_.data();
        for (const Operand operand : {Operand::q, Operand::k, Operand::v, Operand::o}) {
            problem.view(operand) = {next, dtype, strides};
            next += bytes;
        }
    }

    std::vector<std::byte> storage_;
    std::int64_t elements_ = 0;
};

}  // namespace block_attention
