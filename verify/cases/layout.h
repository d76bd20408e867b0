#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/problem.h"

namespace block_attention {

/// How a case's tensors lie in memory.
enum class Layout : std::uint8_t {
    bhsd,
    bshd,
    thd,
    padded,
    every_second,
    packed_qkv,
    transposed,
    interleaved,
    shared_batch,
    shared_heads,
    unaligned,
};

struct LayoutFacts {
    Layout layout;
    std::string_view name;
    std::string_view summary;  ///< the shape in memory, one line
};

/// All layouts, in the enum's order.
std::span<const LayoutFacts> layouts();

std::string_view name_of(Layout layout);

/// The layout of that name, or nothing.
std::optional<Layout> parse_layout(std::string_view name);

/// The strides that a layout gives to an operand of the problem, whose sizes are set. All products of sizes must fit in
/// an int64 several times over, see the limit in case_spec.h.
Strides strides_of(Layout layout, const Problem& problem, Operand operand);

/// Elements by which a layout moves every view away from an aligned address.
constexpr std::int64_t shift_of(Layout layout) { return layout == Layout::unaligned ? 1 : 0; }

}  // namespace block_attention
