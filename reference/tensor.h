#pragma once
#include <array>
#include <cstdint>

#include "reference/dtype.h"

namespace block_attention {

/// The four axes of every tensor of a problem, outermost first by convention; strides may put them in any order.
enum class Axis : std::uint8_t { sequence, head, token, dim };
inline constexpr int kAxes = 4;

/// Distances between neighbours along each axis, in elements, never negative. An input may repeat data with stride 0.
struct Strides {
    std::int64_t sequence = 0;
    std::int64_t head = 0;
    std::int64_t token = 0;
    std::int64_t dim = 1;

    std::int64_t operator[](Axis axis) const {
        return std::array{sequence, head, token, dim}[static_cast<std::size_t>(axis)];
    }
    bool operator==(const Strides&) const = default;
};

/// A strided view of memory that somebody else owns. Element (s, h, t, d) lies at
/// data + (s * strides.sequence + h * strides.head + t * strides.token + d * strides.dim) * size_of(dtype).
///
/// In a jagged problem all sequences share one token axis, so `t` counts over the whole batch and `strides.sequence`
/// is 0.
struct TensorView {
    void* data = nullptr;
    DType dtype = DType::fp16;
    Strides strides;

    /// Distance of element (s, h, t, d) from `data`, in elements.
    [[nodiscard]] std::int64_t offset(std::int64_t s, std::int64_t h, std::int64_t t, std::int64_t d) const {
        return s * strides.sequence + h * strides.head + t * strides.token + d * strides.dim;
    }
    /// Address of element (s, h, t, d).
    [[nodiscard]] void* at(std::int64_t s, std::int64_t h, std::int64_t t, std::int64_t d) const {
        return static_cast<char*>(data) + offset(s, h, t, d) * size_of(dtype);
    }
};

/// Densely packed strides of a [sequences, heads, tokens, dim] tensor.
Strides strides_bhsd(std::int64_t heads, std::int64_t tokens, std::int64_t dim);
/// Densely packed strides of a [sequences, tokens, heads, dim] tensor.
Strides strides_bshd(std::int64_t heads, std::int64_t tokens, std::int64_t dim);
/// Densely packed strides of a jagged [tokens, heads, dim] tensor.
Strides strides_thd(std::int64_t heads, std::int64_t dim);

}  // namespace block_attention
