#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/problem.h"
#include "verify/cases/fill.h"
#include "verify/cases/layout.h"

namespace block_attention {

/// A problem to verify stages with: its sizes, its memory layout and what its inputs contain.
struct Case {
    std::string name;
    std::string description;                           ///< one line
    std::int64_t batch = 1;                            ///< sequences of a uniform case
    std::int64_t tokens = 256;                         ///< of each sequence of a uniform case
    std::optional<std::vector<std::int64_t>> lengths;  ///< tokens of each sequence of a jagged case
    std::int64_t trailing = 0;  ///< jagged: rows behind the last sequence, which belong to no tile
    std::int64_t heads = 1;
    std::int64_t dim = 128;
    std::int64_t block = 64;
    DType dtype = DType::fp16;
    Layout layout = Layout::bhsd;
    std::optional<float> scale;  ///< 1/sqrt(dim) if absent
    Fill fill = Fill::normal;
};

/// The case's problem: sizes, offsets and strides. Its views point nowhere yet, see tensors.h.
Problem make_problem(const Case& test_case);

/// The problem's sizes in words: "fp16, 1 sequence of 256 tokens, 2 heads, dim 128, block 64".
std::string describe(const Problem& problem);

}  // namespace block_attention
