#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "reference/problem.h"

namespace block_attention {
namespace {

using Fault = std::optional<std::string>;
constexpr std::array<Axis, kAxes> kAllAxes{Axis::sequence, Axis::head, Axis::token, Axis::dim};
constexpr std::array<std::string_view, kAxes> kAxisNames{"sequence", "head", "token", "dim"};

/// Elements from the first of a view to just behind its last; nothing if that overflows.
std::optional<std::int64_t> element_span(const std::array<std::int64_t, kAxes>& extents, const Strides& strides) {
    std::int64_t last = 0;
    for (const Axis axis : kAllAxes) {
        const std::int64_t extent = extents[static_cast<std::size_t>(axis)];
        if (extent == 0) return 0;
        std::int64_t step = 0;
        if (__builtin_mul_overflow(extent - 1, strides[axis], &step) || __builtin_add_overflow(last, step, &last)) {
            return std::nullopt;
        }
    }
    return last == std::numeric_limits<std::int64_t>::max() ? std::nullopt : std::optional(last + 1);
}

Fault check_sizes(const Problem& problem) {
    const auto negative = [](std::string_view what, std::int64_t value) {
        return fmt::format("{} is {}; it must be 0 or more", what, value);
    };
    if (problem.sequences < 0) return negative("the number of sequences", problem.sequences);
    if (problem.heads < 0) return negative("the number of heads", problem.heads);
    if (problem.tokens < 0) return negative("the number of tokens", problem.tokens);
    if (problem.head_dim < 1) {
        return fmt::format("the head dim is {}; it must be 1 or more (64 and 128 are usual)", problem.head_dim);
    }
    if (problem.block_size < 1) {
        return fmt::format("the block size is {}; it must be 1 or more (64 is usual)", problem.block_size);
    }
    constexpr std::int64_t kLongestTile = std::numeric_limits<std::int32_t>::max();
    if (problem.block_size > kLongestTile) {
        return fmt::format("the block size is {}; a tile holds at most {} tokens", problem.block_size, kLongestTile);
    }
    if (problem.sequences > kLongestTile) {
        return fmt::format("the number of sequences is {}; at most {} can be told apart", problem.sequences,
                           kLongestTile);
    }
    if (!std::isfinite(problem.scale)) {
        return fmt::format("the scale is {}; it must be a finite number (1/sqrt(head dim) is {})", problem.scale,
                           default_scale(problem.head_dim));
    }
    return std::nullopt;
}

Fault check_offsets(const Problem& problem) {
    if (!problem.jagged()) return std::nullopt;
    const auto& offsets = problem.offsets;
    const auto expected = static_cast<std::uint64_t>(problem.sequences) + 1;
    if (offsets.size() != expected) {
        return fmt::format("there are {} offsets for {} sequences; a jagged batch has one more than sequences: {}",
                           offsets.size(), problem.sequences, expected);
    }
    if (offsets.front() != 0) {
        return fmt::format("offsets[0] is {}; the first sequence starts at token 0", offsets.front());
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] < offsets[i - 1]) {
            return fmt::format(
                "offsets[{}] is {}, below offsets[{}] = {}; offsets must not descend (equal ones make a sequence "
                "empty)",
                i, offsets[i], i - 1, offsets[i - 1]);
        }
    }
    if (offsets.back() > problem.tokens) {
        return fmt::format("the last offset is {}, beyond the {} tokens of q, k and v", offsets.back(), problem.tokens);
    }
    return std::nullopt;
}

Fault check_view(const Problem& problem, Operand operand) {
    const TensorView& view = problem.view(operand);
    const std::string_view name = name_of(operand);
    if (static_cast<unsigned>(view.dtype) > static_cast<unsigned>(DType::fp32)) {
        return fmt::format("{} has an unknown element type (code {}); use fp16, bf16 or fp32", name,
                           static_cast<unsigned>(view.dtype));
    }
    if (operand != Operand::rotary && view.dtype != problem.dtype) {
        return fmt::format("{} is {}, but the problem is {}; all tensors of a problem have one element type", name,
                           name_of(view.dtype), name_of(problem.dtype));
    }
    for (const Axis axis : kAllAxes) {
        if (view.strides[axis] < 0) {
            return fmt::format("{} has the {} stride {}; strides must be 0 or more elements", name,
                               kAxisNames[static_cast<std::size_t>(axis)], view.strides[axis]);
        }
    }
    if (problem.jagged() && view.strides.sequence != 0) {
        return fmt::format("{} has the sequence stride {}; in a jagged problem all sequences share the token axis: 0",
                           name, view.strides.sequence);
    }
    const auto span = byte_span(problem, operand);
    if (!span) {
        const auto extents = problem.extents(operand);
        return fmt::format(
            "{} of {} sequences x {} heads x {} tokens x {} dims with strides {}, {}, {}, {} spans more than 2^63 - 1 "
            "bytes",
            name, extents[0], extents[1], extents[2], extents[3], view.strides.sequence, view.strides.head,
            view.strides.token, view.strides.dim);
    }
    if (*span == 0) return std::nullopt;
    if (view.data == nullptr) return fmt::format("{} points to null, but holds {} bytes", name, *span);
    const auto address = reinterpret_cast<std::uintptr_t>(view.data);
    if (address % static_cast<std::uintptr_t>(size_of(view.dtype)) != 0) {
        return fmt::format("{} is misaligned: {} elements take an address that is a multiple of {}, not {:#x}", name,
                           name_of(view.dtype), size_of(view.dtype), address);
    }
    return std::nullopt;
}

/// Whether two elements of a view may share an address: sorted by stride, each axis must step over all that the smaller
/// ones cover. Sufficient for every layout made by permuting, padding and slicing a dense tensor.
Fault check_output_apart(const Problem& problem, Operand operand) {
    const TensorView& view = problem.view(operand);
    const auto extents = problem.extents(operand);
    std::array<Axis, kAxes> axes = kAllAxes;
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return std::nullopt;
    std::sort(axes.begin(), axes.end(), [&](Axis a, Axis b) { return view.strides[a] < view.strides[b]; });
    std::int64_t covered = 1;
    for (const Axis axis : axes) {
        const auto index = static_cast<std::size_t>(axis);
        if (extents[index] == 1) continue;
        if (view.strides[axis] < covered) {
            return fmt::format(
                "elements of the output {} overlap: its {} stride is {}, but {} elements lie between neighbours; "
                "give every output element a place of its own",
                name_of(operand), kAxisNames[index], view.strides[axis], covered);
        }
        covered += (extents[index] - 1) * view.strides[axis];
    }
    return std::nullopt;
}

struct ByteRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

ByteRange range_of(const Problem& problem, Operand operand) {
    const auto begin = reinterpret_cast<std::uintptr_t>(problem.view(operand).data);
    return {begin, begin + static_cast<std::uintptr_t>(byte_span(problem, operand).value_or(0))};
}

/// Views with equal strides that start less than a token apart are slices of one packed tensor, [tokens, 3, heads, dim]
/// say: they interleave without touching if neither's rows reach into the other's.
bool interleaved(const Problem& problem, Operand first, Operand second) {
    const TensorView& a = problem.view(first);
    const TensorView& b = problem.view(second);
    if (a.strides != b.strides || a.dtype != b.dtype) return false;
    const auto low = std::min(reinterpret_cast<std::uintptr_t>(a.data), reinterpret_cast<std::uintptr_t>(b.data));
    const auto high = std::max(reinterpret_cast<std::uintptr_t>(a.data), reinterpret_cast<std::uintptr_t>(b.data));
    const auto element = static_cast<std::uintptr_t>(size_of(a.dtype));
    if ((high - low) % element != 0) return false;
    const auto distance = static_cast<std::int64_t>((high - low) / element);
    const auto extents = problem.extents(first);
    // The axes that the distance steps over must cover less than it, the others must step over it and them together.
    std::int64_t inner = 0;
    for (const Axis axis : kAllAxes) {
        const std::int64_t reach = (extents[static_cast<std::size_t>(axis)] - 1) * a.strides[axis];
        if (a.strides[axis] <= distance && reach > 0) inner += reach;
    }
    if (inner >= distance) return false;
    return std::all_of(kAllAxes.begin(), kAllAxes.end(), [&](Axis axis) {
        const bool repeats = extents[static_cast<std::size_t>(axis)] > 1;
        return !repeats || a.strides[axis] <= distance || a.strides[axis] > distance + inner;
    });
}

Fault check_outputs(const Problem& problem) {
    const auto outputs = problem.outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (auto fault = check_output_apart(problem, outputs[i])) return fault;
        auto others = problem.inputs();
        others.insert(others.end(), outputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, outputs.end());
        const ByteRange out = range_of(problem, outputs[i]);
        for (const Operand other : others) {
            const ByteRange in = range_of(problem, other);
            if (out.begin < in.end && in.begin < out.end && !interleaved(problem, outputs[i], other)) {
                return fmt::format(
                    "the output {} overlaps {}: they share bytes {:#x} to {:#x}; give {} memory of its own",
                    name_of(outputs[i]), name_of(other), std::max(out.begin, in.begin), std::min(out.end, in.end),
                    name_of(outputs[i]));
            }
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> byte_span(const Problem& problem, Operand operand) {
    const TensorView& view = problem.view(operand);
    const auto elements = element_span(problem.extents(operand), view.strides);
    std::int64_t bytes = 0;
    if (!elements || __builtin_mul_overflow(*elements, std::int64_t{size_of(view.dtype)}, &bytes)) return std::nullopt;
    return bytes;
}

std::optional<std::string> validate(const Problem& problem) {
    if (static_cast<unsigned>(problem.dtype) > static_cast<unsigned>(DType::fp32)) {
        return fmt::format("the problem has an unknown element type (code {}); use fp16, bf16 or fp32",
                           static_cast<unsigned>(problem.dtype));
    }
    if (auto fault = check_sizes(problem)) return fault;
    if (auto fault = check_offsets(problem)) return fault;
    for (const auto& operands : {problem.inputs(), problem.outputs()}) {
        for (const Operand operand : operands) {
            if (auto fault = check_view(problem, operand)) return fault;
        }
    }
    return check_outputs(problem);
}

}  // namespace block_attention
