#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/problem.h"

namespace block_attention {

/// What a case's inputs contain.
enum class Fill : std::uint8_t {
    normal,
    attention,
    integers,
    equal_rows,
    extreme_logits,
    huge_keys,
    subnormal,
    large_values,
    zeros,
    non_finite,
};

struct FillFacts {
    Fill fill;
    std::string_view name;
    std::string_view summary;  ///< one line
};

/// All fills, in the enum's order.
std::span<const FillFacts> fills();

std::string_view name_of(Fill fill);

/// The fill of that name, or nothing.
std::optional<Fill> parse_fill(std::string_view name);

/// Writes the elements of one input, on all cores. An element depends on the fill, the seed, the operand, the problem's
/// sizes and its own indices only: not on the layout, the machine or the number of threads. Where a stride is 0 the
/// elements that share a place hold what index 0 of that axis holds. Rows outside every tile are left alone.
void fill_input(const Problem& problem, Operand operand, Fill fill, std::uint64_t seed);

}  // namespace block_attention
