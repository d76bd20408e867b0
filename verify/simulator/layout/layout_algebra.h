#pragma once
#include <cstdint>
#include <vector>

/// A second way to state a layout, for tests: the shape:stride notation of CuTe. ((4,8),(2,2)):((32,1),(16,8)) is
/// written as a list of modes, the leftmost index running fastest.
namespace block_attention::simulator::layout_algebra {

struct Mode {
    std::uint32_t shape;
    std::uint32_t stride;
};

using Layout = std::vector<Mode>;

/// Where the layout puts a linear index.
inline std::uint32_t offset_of(const Layout& layout, std::uint32_t index) {
    std::uint32_t offset = 0;
    for (const Mode& mode : layout) {
        offset += index % mode.shape * mode.stride;
        index /= mode.shape;
    }
    return offset;
}

/// Number of indices.
inline std::uint32_t size_of(const Layout& layout) {
    std::uint32_t size = 1;
    for (const Mode& mode : layout) size *= mode.shape;
    return size;
}

/// CuTe's Swizzle<bits, base, shift>: bits base + shift .. base + shift + bits - 1 are XORed into bits base ...
inline std::uint32_t swizzle(std::uint32_t bits, std::uint32_t base, std::uint32_t shift, std::uint32_t offset) {
    for (std::uint32_t i = 0; i < bits; ++i) offset ^= (offset >> (base + shift + i) & 1) << (base + i);
    return offset;
}

}  // namespace block_attention::simulator::layout_algebra
