#include "verify/footprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace block_attention {
namespace {

constexpr std::array<Axis, kAxes> kAllAxes{Axis::sequence, Axis::head, Axis::token, Axis::dim};

/// An operand's sizes without the rows that lie behind the last sequence of a jagged batch.
std::array<std::int64_t, kAxes> extents_in_tiles(const Problem& problem, Operand operand) {
    auto extents = problem.extents(operand);
    if (problem.jagged()) extents[static_cast<std::size_t>(Axis::token)] = problem.offsets.back();
    return extents;
}

std::int64_t extent(const std::array<std::int64_t, kAxes>& extents, Axis axis) {
    return extents[static_cast<std::size_t>(axis)];
}

/// Whether the view is dense: sorted by stride, each axis steps over exactly what the smaller ones cover.
bool is_dense(const std::array<std::int64_t, kAxes>& extents, const Strides& strides) {
    auto axes = kAllAxes;
    std::sort(axes.begin(), axes.end(), [&](Axis a, Axis b) { return strides[a] < strides[b]; });
    std::int64_t covered = 1;
    for (const Axis axis : axes) {
        if (extent(extents, axis) <= 1 || strides[axis] == 0) continue;
        if (strides[axis] != covered) return false;
        covered *= extent(extents, axis);
    }
    return true;
}

}  // namespace

Footprint::Footprint(const Problem& problem, Operand operand)
    : span_(byte_span(problem, operand).value() / size_of(problem.view(operand).dtype)) {
    const Strides& strides = problem.view(operand).strides;
    const auto extents = extents_in_tiles(problem, operand);
    const bool complete = extents == problem.extents(operand);
    if (span_ == 0 || (complete && is_dense(extents, strides))) {
        places_ = span_;
        return;
    }
    inside_.assign(static_cast<std::size_t>(span_), false);
    for (std::int64_t s = 0; s < extents[0]; ++s) {
        for (std::int64_t h = 0; h < extents[1]; ++h) {
            for (std::int64_t t = 0; t < extents[2]; ++t) {
                for (std::int64_t d = 0; d < extents[3]; ++d) {
                    inside_[static_cast<std::size_t>(problem.view(operand).offset(s, h, t, d))] = true;
                }
            }
        }
    }
    places_ = std::count(inside_.begin(), inside_.end(), true);
}

bool Footprint::contains(std::int64_t place) const {
    return place >= 0 && place < span_ && (inside_.empty() || inside_[static_cast<std::size_t>(place)]);
}

void Footprint::for_each(bool inside, const std::function<void(ElementRange)>& visit) const {
    if (inside_.empty()) {
        if (inside && span_ > 0) visit({0, span_});
        return;
    }
    auto begin = std::find(inside_.begin(), inside_.end(), inside);
    while (begin != inside_.end()) {
        const auto end = std::find(begin, inside_.end(), !inside);
        visit({begin - inside_.begin(), end - inside_.begin()});
        begin = std::find(end, inside_.end(), inside);
    }
}

std::string element_at(const Problem& problem, Operand operand, std::int64_t place) {
    const Strides& strides = problem.view(operand).strides;
    const auto extents = problem.extents(operand);
    auto axes = kAllAxes;
    // Of equal strides the axis with one index comes last, or it would be given all the steps.
    std::sort(axes.begin(), axes.end(), [&](Axis a, Axis b) {
        const std::int64_t steps_a = extent(extents, a) > 1 ? strides[a] : 0;
        const std::int64_t steps_b = extent(extents, b) > 1 ? strides[b] : 0;
        return steps_a > steps_b;
    });
    std::array<std::int64_t, kAxes> indices{};
    for (const Axis axis : axes) {
        if (extent(extents, axis) <= 1 || strides[axis] == 0) continue;
        indices[static_cast<std::size_t>(axis)] = place / strides[axis];
        place %= strides[axis];
    }
    const std::string row = fmt::format("head {}, token {}, dim {}", indices[1], indices[2], indices[3]);
    return problem.jagged() ? row : fmt::format("sequence {}, {}", indices[0], row);
}

}  // namespace block_attention
