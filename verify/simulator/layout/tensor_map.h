#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "verify/simulator/layout/swizzle.h"

/// Tensor maps: what cuTensorMapEncodeTiled takes, checks and hides in 128 opaque bytes. Sources: CUDA driver API
/// reference ("Tensor Map Object Management"), cuda.h 13.0, and what driver 580.159.04 refused on an H200.
namespace block_attention::simulator {

inline constexpr std::uint32_t kMaxTensorRank = 5;

/// Element type, with the values of CUtensorMapDataType.
enum class TensorMapType : std::uint8_t {
    uint8,
    uint16,
    uint32,
    int32,
    uint64,
    int64,
    float16,
    float32,
    float64,
    bfloat16,
    float32_ftz,
    tfloat32,
    tfloat32_ftz,
    u4x16_align8,  ///< these three pack elements of 4 or 6 bits; sm_90 refuses them
    u4x16_align16,
    u6x16_align16,
};

/// CUtensorMapInterleave.
enum class TensorMapInterleave : std::uint8_t { none, b16, b32 };

/// CUtensorMapL2promotion: of no effect on results.
enum class TensorMapL2Promotion : std::uint8_t { none, b64, b128, b256 };

/// CUtensorMapFloatOOBfill: what a load writes for elements outside the tensor.
enum class TensorMapFill : std::uint8_t { zero, nan };

/// A tensor in global memory and a box to copy from or to it. Dimension 0 is the contiguous one. Of the arrays, entries
/// from `rank` on (of byte_strides: from rank - 1 on) are not used.
struct TensorMap {
    TensorMapType type = TensorMapType::uint8;
    std::uint32_t rank = 1;
    std::uint64_t address = 0;
    std::array<std::uint64_t, kMaxTensorRank> dims{1, 1, 1, 1, 1};             ///< elements
    std::array<std::uint64_t, kMaxTensorRank - 1> byte_strides{};              ///< of dimensions 1 and up
    std::array<std::uint32_t, kMaxTensorRank> box{1, 1, 1, 1, 1};              ///< elements walked over
    std::array<std::uint32_t, kMaxTensorRank> element_strides{1, 1, 1, 1, 1};  ///< of the walk; entry 0 has no effect
    TensorMapInterleave interleave = TensorMapInterleave::none;
    SwizzleMode swizzle = SwizzleMode::none;
    TensorMapL2Promotion l2_promotion = TensorMapL2Promotion::none;
    TensorMapFill fill = TensorMapFill::zero;

    bool operator==(const TensorMap&) const = default;
};

/// "bfloat16", ...
std::string_view name_of(TensorMapType type);

/// Bits of an element in global memory: 4 and 6 for the packed types.
std::uint32_t element_bits(TensorMapType type);

/// Bytes of an element, for every type but the packed ones.
inline std::uint32_t element_bytes(const TensorMap& map) { return element_bits(map.type) / 8; }

/// Whether `type` is floating-point and not packed, so that out-of-bounds elements may be filled with NaN.
bool is_floating(TensorMapType type);

/// Elements that a copy takes along a dimension: ceil(box / element stride), in dimension 0 the whole box.
inline std::uint32_t box_count(const TensorMap& map, std::uint32_t dimension) {
    const std::uint32_t stride = dimension == 0 ? 1 : map.element_strides[dimension];
    return (map.box[dimension] + stride - 1) / stride;
}

/// The first constraint of cuTensorMapEncodeTiled that the map violates on an architecture (90, 100, ...), in terms of
/// that function's parameters: its name, its value, its limit. Empty if there is none.
///
/// Documented and confirmed on H200, except that
/// - elementStrides[0] must be in 1..8 although it has no effect (H200);
/// - the box must not exceed the shared memory of a multiprocessor (H200: 233472 bytes pass, 261120 do not;
/// undocumented);
/// - the 128B swizzles with larger atoms and the packed types need sm_100 (H200 refuses them);
/// - the rules of the packed types and of 32-byte interleave are from the documentation alone.
/// Accepted, as on H200: strides of 0, strides smaller than a row or not increasing, boxes larger than the tensor, a
/// null address, and a base aligned to 16 bytes under any swizzle.
std::string validate(const TensorMap& map, int architecture);

/// Why the simulator cannot copy with a map that validate() accepts: interleaved layouts, packed types, the 8-byte
/// flip. Empty if it can.
std::string unsupported(const TensorMap& map);

inline constexpr std::size_t kTensorMapBytes = 128;
using TensorMapBytes = std::array<std::byte, kTensorMapBytes>;

/// The simulator's own encoding of a map, to be passed where a kernel expects a CUtensorMap.
TensorMapBytes encode_tensor_map(const TensorMap& map);

/// The map in 128 bytes, or why they hold none: never written by encode_tensor_map, or changed since.
std::variant<TensorMap, std::string> decode_tensor_map(std::span<const std::byte, kTensorMapBytes> bytes);

}  // namespace block_attention::simulator
