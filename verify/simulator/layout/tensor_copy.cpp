#include "verify/simulator/layout/tensor_copy.h"

#include <fmt/format.h>

#include <cstring>

namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kGranularity = 16;  // bytes of global memory that a tensor copy handles at once
constexpr std::uint32_t kSharedAlignment = 128;

std::string_view words(TensorCopyDirection direction) {
    return direction == TensorCopyDirection::load ? "load" : "store";
}

std::uint32_t round_to_tfloat32(std::uint32_t bits) {
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFE000;
    const std::uint32_t tie_to_even = (bits >> 13) & 1;
    return (bits + 0xFFF + tie_to_even) & ~std::uint32_t{0x1FFF};
}

}  // namespace

TensorBox::TensorBox(const TensorMap& map) {
    for (std::uint32_t i = 0; i < map.rank; ++i) count[i] = box_count(map, i);
    for (std::uint32_t i = 1; i < map.rank; ++i) rows *= count[i];
    row_bytes = count[0] * element_bytes(map);
    row_pitch = map.swizzle == SwizzleMode::none ? row_bytes : pattern_of(map.swizzle).span_bytes;
}

std::string check_tensor_copy(const TensorMap& map, const TensorCoordinates& coordinates, std::uint32_t shared_address,
                              TensorCopyDirection direction) {
    if (shared_address % kSharedAlignment != 0) {
        return fmt::format("the shared address of the tensor {} is {:#x}: it must be a multiple of {}",
                           words(direction), shared_address, kSharedAlignment);
    }
    if (std::int64_t{coordinates[0]} * element_bytes(map) % kGranularity != 0) {
        return fmt::format("coordinate 0 of the tensor {} is {}: with elements of {} bytes it must be a multiple of {}",
                           words(direction), coordinates[0], element_bytes(map), kGranularity / element_bytes(map));
    }
    for (std::uint32_t i = 0; i < map.rank && direction == TensorCopyDirection::store; ++i) {
        if (coordinates[i] < 0) {
            return fmt::format("coordinate {} of the tensor store is {}: it must not be negative", i, coordinates[i]);
        }
    }
    return {};
}

void convert_loaded(TensorMapType type, std::span<std::byte> bytes) {
    if (type != TensorMapType::tfloat32 && type != TensorMapType::tfloat32_ftz) return;
    for (std::size_t i = 0; i + sizeof(std::uint32_t) <= bytes.size(); i += sizeof(std::uint32_t)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &bytes[i], sizeof(bits));
        bits = round_to_tfloat32(bits);
        std::memcpy(&bytes[i], &bits, sizeof(bits));
    }
}

TensorRowWalk::TensorRowWalk(const TensorMap& map, const TensorCoordinates& coordinates, TensorCopyDirection direction,
                             const TensorBox& box)
    : swizzle_(map.swizzle),
      row_bytes_(box.row_bytes),
      chunk_bytes_(map.swizzle == SwizzleMode::none ? box.row_bytes : pattern_of(map.swizzle).chunk_bytes) {
    const std::int64_t first = std::int64_t{coordinates[0]} * element_bytes(map);
    std::int64_t limit = static_cast<std::int64_t>(map.dims[0]) * element_bytes(map);
    if (direction == TensorCopyDirection::store) limit = (limit + kGranularity - 1) / kGranularity * kGranularity;
    begin_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(-first, 0, row_bytes_));
    end_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(limit - first, begin_, row_bytes_));
}

}  // namespace block_attention::simulator
