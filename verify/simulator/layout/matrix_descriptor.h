#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "verify/simulator/layout/swizzle.h"
#include "verify/simulator/layout/verdict.h"

/// Matrix operands of 16-bit elements in shared memory: the 64-bit descriptors of wgmma (PTX ISA 9.7.15.5.1.2.2) and
/// tcgen05 (9.7.16.4.1), and where the elements lie. The layouts are the canonical ones of 9.7.15.5.1.2.1.3, equal for
/// both. For wgmma all of it was measured on H200: both operands, both majors, four swizzles, natural and stretched
/// strides, every K step. For tcgen05 it rests on the PTX ISA, CUTLASS, DeepGEMM and learn-cuda agreeing.
namespace block_attention::simulator {

/// K extent of one instruction with 16-bit elements.
inline constexpr std::uint32_t kMmaK = 16;

/// The dimension along which elements are contiguous: that of the sum, or that of the rows of A (M) and the columns of
/// B (N).
enum class Major : std::uint8_t { k, mn };

struct MatrixDescriptor {
    std::uint32_t start = 0;        ///< byte address in the CTA's shared window
    std::uint32_t leading = 0;      ///< "leading dimension byte offset", LBO
    std::uint32_t stride = 0;       ///< "stride dimension byte offset", SBO
    std::uint32_t base_offset = 0;  ///< 0..7, see swizzled()
    SwizzleMode swizzle = SwizzleMode::none;

    bool operator==(const MatrixDescriptor&) const = default;
};

/// The fields of a descriptor of wgmma.mma_async. Every value of the 64 bits has a meaning.
MatrixDescriptor decode_wgmma_descriptor(std::uint64_t bits);

/// Warns of bits that sm_90 ignores (measured on H200: 14, 15, 30, 31, 46-48, 52-61), as a tcgen05 descriptor has them.
Verdict check_wgmma_descriptor(std::uint64_t bits);

/// The fields of a descriptor of tcgen05.mma and tcgen05.cp, if check_tcgen05_descriptor has no error.
MatrixDescriptor decode_tcgen05_descriptor(std::uint64_t bits);

/// Errors: bits 46-48 not 0b001, reserved bits, swizzle codes 3, 5 and 7, the absolute leading address of sm_103, a
/// base offset that is not 0 (nobody measured it on sm_100), and the 128B swizzle with 32-byte atoms for an MN-major
/// operand (PTX ISA 9.7.16.10.3). Warns of a swizzle pattern that starts off its boundary.
Verdict check_tcgen05_descriptor(std::uint64_t bits, Major major);

/// The bits of a descriptor. Addresses and offsets keep bits 4 to 17, the others are lost.
std::uint64_t encode_wgmma_descriptor(const MatrixDescriptor& descriptor);
std::uint64_t encode_tcgen05_descriptor(const MatrixDescriptor& descriptor);

/// Address of the 16-byte chunk that holds, K-major, elements (mn, 8 k8 .. 8 k8 + 7), swizzle applied.
constexpr std::uint32_t k_major_chunk(const MatrixDescriptor& d, std::uint32_t mn, std::uint32_t k8) {
    const std::uint32_t span = pattern_of(d.swizzle).span_bytes;
    const std::uint32_t row = span == 0 ? mn % 8 * 16 + k8 * d.leading : mn % 8 * span + k8 * 16;
    return swizzled(d.swizzle, d.start + mn / 8 * d.stride + row, d.base_offset);
}

/// Address of the 16-byte chunk that holds, MN-major, elements (8 mn8 .. 8 mn8 + 7, k), swizzle applied.
constexpr std::uint32_t mn_major_chunk(const MatrixDescriptor& d, std::uint32_t mn8, std::uint32_t k) {
    const std::uint32_t span = pattern_of(d.swizzle).span_bytes;
    if (span == 0) return d.start + mn8 * d.stride + k / 8 * d.leading + k % 8 * 16;
    const std::uint32_t chunks = span / 16;
    const std::uint32_t line = mn8 / chunks * d.leading + k / 8 * d.stride + k % 8 * span;
    return swizzled(d.swizzle, d.start + line + mn8 % chunks * 16, d.base_offset);
}

/// Byte address of element (mn, k) of an operand of M x 16 or 16 x N elements.
constexpr std::uint32_t element_address(const MatrixDescriptor& d, Major major, std::uint32_t mn, std::uint32_t k) {
    return major == Major::k ? k_major_chunk(d, mn, k / 8) + k % 8 * 2 : mn_major_chunk(d, mn / 8, k) + mn % 8 * 2;
}

/// Collects `extent` rows or columns of an operand, from `first` on, both multiples of 8:
/// packed[(mn - first) * 16 + k]. read(address, mn) returns a pointer to the 16 bytes of shared memory at a 16-byte
/// aligned address, which hold elements of row or column `first` + mn or, MN-major, of that one and the next 7; it is
/// called once for every chunk of the operand.
template <typename Read>
void gather_part(const MatrixDescriptor& d, Major major, std::uint32_t first, std::uint32_t extent, Read&& read,
                 std::uint16_t* packed) {
    if (major == Major::k) {
        for (std::uint32_t mn = 0; mn < extent; ++mn) {
            for (std::uint32_t k8 = 0; k8 < kMmaK / 8; ++k8) {
                const std::byte* chunk = read(k_major_chunk(d, first + mn, k8), mn);
                std::memcpy(packed + std::size_t{mn} * kMmaK + std::size_t{k8} * 8, chunk, 16);
            }
        }
        return;
    }
    for (std::uint32_t mn8 = 0; mn8 < extent / 8; ++mn8) {
        for (std::uint32_t k = 0; k < kMmaK; ++k) {
            const std::byte* chunk = read(mn_major_chunk(d, first / 8 + mn8, k), mn8 * 8);
            std::uint16_t* column = packed + std::size_t{mn8} * 8 * kMmaK + k;
            for (std::size_t i = 0; i < 8; ++i) {
                std::memcpy(column + i * kMmaK, chunk + i * sizeof(std::uint16_t), sizeof(std::uint16_t));
            }
        }
    }
}

/// Collects all of an operand; read(address) as above.
template <typename Read>
void gather_operand(const MatrixDescriptor& d, Major major, std::uint32_t extent, Read&& read, std::uint16_t* packed) {
    gather_part(
        d, major, 0, extent, [&](std::uint32_t address, std::uint32_t) { return read(address); }, packed);
}

}  // namespace block_attention::simulator
