#include "verify/cases/layout.h"

#include <algorithm>
#include <array>

namespace block_attention {
namespace {

constexpr std::array kLayouts{
    LayoutFacts{Layout::bhsd, "bhsd", "[batch, heads, tokens, dim], dense; jagged: [heads, tokens, dim]"},
    LayoutFacts{Layout::bshd, "bshd", "[batch, tokens, heads, dim], dense"},
    LayoutFacts{Layout::thd, "thd", "[tokens, heads, dim], dense, jagged only"},
    LayoutFacts{Layout::padded, "padded", "[batch, tokens, heads, dim] with 8 elements behind every row"},
    LayoutFacts{Layout::every_second, "every-second", "[batch, tokens, heads, dim, 2], the first of each pair"},
    LayoutFacts{Layout::packed_qkv, "packed-qkv", "[batch, tokens, 3, heads, dim] for q, k and v; o is bshd"},
    LayoutFacts{Layout::transposed, "transposed", "[batch, heads, dim, tokens]"},
    LayoutFacts{Layout::interleaved, "interleaved", "[batch, tokens, dim, heads]"},
    LayoutFacts{Layout::shared_batch, "shared-batch", "bhsd, but all sequences share k and v (stride 0)"},
    LayoutFacts{Layout::shared_heads, "shared-heads", "bhsd, but all heads share k and v (stride 0)"},
    LayoutFacts{Layout::unaligned, "unaligned", "bhsd, one element behind an aligned address"},
};

constexpr std::int64_t kRowPadding = 8;

Strides uniform_strides(Layout layout, Operand operand, std::int64_t heads, std::int64_t tokens, std::int64_t dim) {
    const bool key_or_value = operand == Operand::k || operand == Operand::v;
    switch (layout) {
        case Layout::bhsd:
        case Layout::unaligned:
            break;
        case Layout::bshd:
        case Layout::thd:
            return strides_bshd(heads, tokens, dim);
        case Layout::padded:
            return strides_bshd(heads, tokens, dim + kRowPadding);
        case Layout::every_second: {
            Strides strides = strides_bshd(heads, tokens, 2 * dim);
            strides.dim = 2;
            return strides;
        }
        case Layout::packed_qkv: {
            Strides strides = strides_bshd(heads, tokens, dim);
            if (operand == Operand::q || key_or_value) {
                strides.token *= 3;
                strides.sequence *= 3;
            }
            return strides;
        }
        case Layout::transposed:
            return {.sequence = heads * dim * tokens, .head = dim * tokens, .token = 1, .dim = tokens};
        case Layout::interleaved:
            return {.sequence = tokens * dim * heads, .head = 1, .token = dim * heads, .dim = heads};
        case Layout::shared_batch:
            if (key_or_value) return {.sequence = 0, .head = tokens * dim, .token = dim, .dim = 1};
            break;
        case Layout::shared_heads:
            if (key_or_value) return {.sequence = tokens * dim, .head = 0, .token = dim, .dim = 1};
            break;
    }
    return strides_bhsd(heads, tokens, dim);
}

}  // namespace

std::span<const LayoutFacts> layouts() { return kLayouts; }

std::string_view name_of(Layout layout) { return kLayouts[static_cast<std::size_t>(layout)].name; }

std::optional<Layout> parse_layout(std::string_view name) {
    const auto found =
        std::find_if(kLayouts.begin(), kLayouts.end(), [&](const auto& facts) { return facts.name == name; });
    return found == kLayouts.end() ? std::nullopt : std::optional(found->layout);
}

Strides strides_of(Layout layout, const Problem& problem, Operand operand) {
    Strides strides = uniform_strides(layout, operand, problem.heads, problem.tokens, problem.head_dim);
    if (problem.jagged()) strides.sequence = 0;
    return strides;
}

}  // namespace block_attention
