#include "verify/simulator/layout/matrix_descriptor.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace block_attention::simulator {
namespace {

constexpr std::uint64_t kWgmmaIgnored = 0x3FF1'C000'C000'C000;     // bits 14, 15, 30, 31, 46-48, 52-61
constexpr std::uint64_t kTcgen05Reserved = 0x1FE0'0000'C000'C000;  // bits 14, 15, 30, 31, 53-60

/// Bits first .. first + count - 1.
constexpr std::uint32_t field(std::uint64_t bits, unsigned first, unsigned count) {
    return static_cast<std::uint32_t>(bits >> first) & ((1U << count) - 1);
}

/// "matrix-descriptor-encode" of the PTX ISA.
constexpr std::uint64_t encode(std::uint32_t bytes) { return (bytes & 0x3FFFF) >> 4; }

MatrixDescriptor decode_common(std::uint64_t bits) {
    return {field(bits, 0, 14) << 4, field(bits, 16, 14) << 4, field(bits, 32, 14) << 4, field(bits, 49, 3),
            SwizzleMode::none};
}

std::uint64_t encode_common(const MatrixDescriptor& descriptor) {
    return encode(descriptor.start) | encode(descriptor.leading) << 16 | encode(descriptor.stride) << 32 |
           std::uint64_t{descriptor.base_offset & 7} << 49;
}

constexpr std::array<SwizzleMode, 4> kWgmmaSwizzles{SwizzleMode::none, SwizzleMode::b128, SwizzleMode::b64,
                                                    SwizzleMode::b32};

std::optional<SwizzleMode> tcgen05_swizzle(std::uint32_t code) {
    switch (code) {
        case 0:
            return SwizzleMode::none;
        case 1:
            return SwizzleMode::b128_atom_32;
        case 2:
            return SwizzleMode::b128;
        case 4:
            return SwizzleMode::b64;
        case 6:
            return SwizzleMode::b32;
        default:
            return std::nullopt;
    }
}

std::string find_tcgen05_error(std::uint64_t bits, Major major) {
    const std::uint32_t version = field(bits, 46, 3);
    if (version != 1) {
        return fmt::format(
            "bits 46-48 of the matrix descriptor {:#018x} are {}: tcgen05 needs 1, wgmma descriptors have 0", bits,
            version);
    }
    if ((bits & kTcgen05Reserved) != 0) {
        return fmt::format("the matrix descriptor {:#018x} has reserved bits {:#018x}: they must be 0", bits,
                           bits & kTcgen05Reserved);
    }
    if (field(bits, 52, 1) != 0) {
        return fmt::format("bit 52 of the matrix descriptor {:#018x} is 1: an absolute leading address needs sm_103",
                           bits);
    }
    const std::uint32_t code = field(bits, 61, 3);
    const auto swizzle = tcgen05_swizzle(code);
    if (!swizzle) {
        return fmt::format(
            "the swizzle code (bits 61-63) of the matrix descriptor {:#018x} is {}: valid are 0 (none), 1 "
            "(128B with 32-byte atoms), 2 (128B), 4 (64B) and 6 (32B)",
            bits, code);
    }
    if (*swizzle == SwizzleMode::b128_atom_32 && major == Major::mn) {
        return fmt::format(
            "the swizzle code (bits 61-63) of the matrix descriptor {:#018x} is 1 (128B with 32-byte atoms): "
            "an MN-major operand of 16-bit elements cannot have it",
            bits);
    }
    if (field(bits, 49, 3) != 0) {
        return fmt::format(
            "the base offset (bits 49-51) of the matrix descriptor {:#018x} is {}: its effect on sm_100 is "
            "not known; align the tile to its swizzle pattern and use 0",
            bits, field(bits, 49, 3));
    }
    return {};
}

}  // namespace

MatrixDescriptor decode_wgmma_descriptor(std::uint64_t bits) {
    MatrixDescriptor descriptor = decode_common(bits);
    descriptor.swizzle = kWgmmaSwizzles.at(field(bits, 62, 2));
    return descriptor;
}

Verdict check_wgmma_descriptor(std::uint64_t bits) {
    if ((bits & kWgmmaIgnored) == 0) return {};
    return {
        {},
        fmt::format("the matrix descriptor {:#018x} has bits {:#018x} that wgmma ignores{}", bits, bits & kWgmmaIgnored,
                    field(bits, 46, 3) == 1 ? "; is it one for tcgen05, whose swizzle codes differ?" : "")};
}

MatrixDescriptor decode_tcgen05_descriptor(std::uint64_t bits) {
    MatrixDescriptor descriptor = decode_common(bits);
    descriptor.swizzle = tcgen05_swizzle(field(bits, 61, 3)).value_or(SwizzleMode::none);
    return descriptor;
}

Verdict check_tcgen05_descriptor(std::uint64_t bits, Major major) {
    Verdict verdict{find_tcgen05_error(bits, major), {}};
    if (!verdict.ok()) return verdict;
    const MatrixDescriptor descriptor = decode_tcgen05_descriptor(bits);
    const std::uint32_t pattern_bytes = pattern_of(descriptor.swizzle).lines * 128;
    if (descriptor.swizzle != SwizzleMode::none && descriptor.start % pattern_bytes >= 128) {
        verdict.warning = fmt::format(
            "the matrix descriptor {:#018x} starts at {:#x}, in line {} of its {} swizzle pattern, with base offset 0: "
            "this "
            "works on sm_90 for tiles that TMA wrote, but is not known for sm_100; align tiles to {} bytes",
            bits, descriptor.start, descriptor.start % pattern_bytes / 128, name_of(descriptor.swizzle), pattern_bytes);
    }
    return verdict;
}

std::uint64_t encode_wgmma_descriptor(const MatrixDescriptor& descriptor) {
    std::uint64_t code = 0;
    while (kWgmmaSwizzles.at(code) != descriptor.swizzle) ++code;
    return encode_common(descriptor) | code << 62;
}

std::uint64_t encode_tcgen05_descriptor(const MatrixDescriptor& descriptor) {
    std::uint32_t code = 0;
    while (tcgen05_swizzle(code) != descriptor.swizzle) ++code;
    return encode_common(descriptor) | std::uint64_t{1} << 46 | std::uint64_t{code} << 61;
}

}  // namespace block_attention::simulator
