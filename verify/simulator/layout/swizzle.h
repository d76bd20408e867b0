#pragma once
#include <cstdint>
#include <string_view>

/// Shared-memory swizzles (PTX ISA 5.5.7), used by tensor copies and by matrix operands alike. A swizzle permutes the
/// 16-byte chunks of a 128-byte line by an XOR with bits of the absolute address in the CTA's shared window, not of the
/// offset in the tile: measured on H200 for loads and stores at 1024 k + 128 n, all n, modes 32B, 64B and 128B.
namespace block_attention::simulator {

/// The mode of a swizzle, with the values of CUtensorMapSwizzle (cuda.h).
enum class SwizzleMode : std::uint8_t {
    none,
    b32,
    b64,
    b128,
    b128_atom_32,         ///< 32-byte chunks stay whole. PTX ISA table and CUTLASS agree; sm_90 refuses it
    b128_atom_32_flip_8,  ///< only a figure says which lines flip: not modelled
    b128_atom_64,         ///< 64-byte chunks stay whole. From the PTX ISA's table alone; sm_90 refuses it
};

/// "none", "32B", "64B", "128B", "128B with 32-byte atoms", ...
std::string_view name_of(SwizzleMode mode);

/// Whether swizzled() knows the mode.
constexpr bool is_modelled(SwizzleMode mode) {
    return mode <= SwizzleMode::b128_atom_64 && mode != SwizzleMode::b128_atom_32_flip_8;
}

struct SwizzlePattern {
    std::uint32_t span_bytes = 0;   ///< a row of the tile: chunks move inside it. 0 without a swizzle
    std::uint32_t lines = 1;        ///< 128-byte lines after which the pattern repeats
    std::uint32_t chunk_bytes = 0;  ///< bytes that stay together. 0 without a swizzle
};

/// The pattern of a mode. Of one that is not modelled, only the span is known.
constexpr SwizzlePattern pattern_of(SwizzleMode mode) {
    switch (mode) {
        case SwizzleMode::b32:
            return {32, 2, 16};
        case SwizzleMode::b64:
            return {64, 4, 16};
        case SwizzleMode::b128:
            return {128, 8, 16};
        case SwizzleMode::b128_atom_32:
            return {128, 4, 32};
        case SwizzleMode::b128_atom_64:
            return {128, 2, 64};
        case SwizzleMode::b128_atom_32_flip_8:
            return {128, 1, 0};
        default:
            return {};
    }
}

/// Where the byte lies that an unswizzled layout puts at `address`, a byte address in the CTA's shared window.
/// `base_offset` is that field of a matrix descriptor: it is subtracted from the number of the 128-byte line (measured
/// on H200 for wgmma, every start and every value). Tensor copies have none. The mode must be one that is_modelled.
constexpr std::uint32_t swizzled(SwizzleMode mode, std::uint32_t address, std::uint32_t base_offset = 0) {
    const SwizzlePattern pattern = pattern_of(mode);
    return address ^ (((address / 128 - base_offset) & (pattern.lines - 1)) * pattern.chunk_bytes);
}

}  // namespace block_attention::simulator
