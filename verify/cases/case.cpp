#include "verify/cases/case.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "verify/text.h"

namespace block_attention {
namespace {

std::string describe_lengths(const Problem& problem) {
    if (!problem.jagged()) {
        return fmt::format("{} of {}", counted(problem.sequences, "sequence"), counted(problem.tokens, "token"));
    }
    if (problem.sequences == 0) return "0 sequences";
    std::vector<std::int64_t> lengths(problem.offsets.size());
    std::adjacent_difference(problem.offsets.begin(), problem.offsets.end(), lengths.begin());
    const auto [shortest, longest] = std::minmax_element(lengths.begin() + 1, lengths.end());
    const std::string sequences = counted(problem.sequences, "sequence");
    if (*shortest == *longest) return fmt::format("{} of {}, jagged", sequences, counted(*longest, "token"));
    return fmt::format("{} of {} to {}, jagged", sequences, *shortest, counted(*longest, "token"));
}

}  // namespace

Problem make_problem(const Case& test_case) {
    Problem problem;
    problem.dtype = test_case.dtype;
    problem.sequences = test_case.batch;
    problem.tokens = test_case.tokens;
    problem.heads = test_case.heads;
    problem.head_dim = test_case.dim;
    problem.block_size = test_case.block;
    problem.scale = test_case.scale.value_or(default_scale(test_case.dim));
    if (test_case.lengths) {
        problem.sequences = static_cast<std::int64_t>(test_case.lengths->size());
        problem.offsets.assign(1, 0);
        for (const std::int64_t length : *test_case.lengths) problem.offsets.push_back(problem.offsets.back() + length);
        problem.tokens = problem.offsets.back() + test_case.trailing;
    }
    for (const auto& operands : {problem.inputs(), problem.outputs()}) {
        for (const Operand operand : operands) {
            problem.view(operand) = {
                .data = nullptr, .dtype = problem.dtype, .strides = strides_of(test_case.layout, problem, operand)};
        }
    }
    return problem;
}

std::string describe(const Problem& problem) {
    return fmt::format("{}, {}, {}, dim {}, block {}", name_of(problem.dtype), describe_lengths(problem),
                       counted(problem.heads, "head"), problem.head_dim, problem.block_size);
}

}  // namespace block_attention
