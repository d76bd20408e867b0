#include <fmt/format.h>

#include "verify/simulator/layout/tensor_map.h"

namespace block_attention::simulator {
namespace {

constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;
constexpr std::uint64_t kMaxBoxBytes = 233472;  // shared memory of a multiprocessor, cc 9.0 and 10.0

bool is_packed(TensorMapType type) { return type >= TensorMapType::u4x16_align8; }

/// The packed types that shared memory holds in 16-byte units.
bool is_padded(TensorMapType type) { return type >= TensorMapType::u4x16_align16; }

std::string check_enumerations(const TensorMap& map, int architecture) {
    if (map.type > TensorMapType::u6x16_align16) {
        return fmt::format("tensorDataType is {}: the largest is {}", static_cast<unsigned>(map.type),
                           static_cast<unsigned>(TensorMapType::u6x16_align16));
    }
    if (map.interleave > TensorMapInterleave::b32) {
        return fmt::format("interleave is {}: the largest is 2 (32B)", static_cast<unsigned>(map.interleave));
    }
    if (map.swizzle > SwizzleMode::b128_atom_64) {
        return fmt::format("swizzle is {}: the largest is 6 (128B_ATOM_64B)", static_cast<unsigned>(map.swizzle));
    }
    if (map.l2_promotion > TensorMapL2Promotion::b256) {
        return fmt::format("l2Promotion is {}: the largest is 3 (L2_256B)", static_cast<unsigned>(map.l2_promotion));
    }
    if (map.fill > TensorMapFill::nan) {
        return fmt::format("oobFill is {}: the largest is 1 (NAN_REQUEST_ZERO_FMA)", static_cast<unsigned>(map.fill));
    }
    if (map.rank < 1 || map.rank > kMaxTensorRank) {
        return fmt::format("tensorRank is {}: it must be in 1..{}", map.rank, kMaxTensorRank);
    }
    if (architecture < 100 && map.swizzle > SwizzleMode::b128) {
        return fmt::format("swizzle is {} ({}): sm_{} has only none, 32B, 64B and 128B",
                           static_cast<unsigned>(map.swizzle), name_of(map.swizzle), architecture);
    }
    if (architecture < 100 && is_packed(map.type)) {
        return fmt::format("tensorDataType is {}: packed types need sm_100, this is sm_{}", name_of(map.type),
                           architecture);
    }
    return {};
}

std::string check_tensor(const TensorMap& map) {
    const bool wide = map.interleave == TensorMapInterleave::b32 || is_padded(map.type);
    const std::uint64_t alignment = wide ? 32 : 16;
    const std::string_view because = wide ? " with 32-byte interleave or a 16-byte aligned packed type" : "";
    if (map.address % alignment != 0) {
        return fmt::format("globalAddress is {:#x}: it must be a multiple of {} bytes{}", map.address, alignment,
                           because);
    }
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        if (map.dims[i] < 1 || map.dims[i] > kMaxDim) {
            return fmt::format("globalDim[{}] is {}: it must be in 1..2^32", i, map.dims[i]);
        }
    }
    for (std::uint32_t i = 0; i + 1 < map.rank; ++i) {
        if (map.byte_strides[i] % alignment != 0) {
            return fmt::format("globalStrides[{}] is {} bytes: it must be a multiple of {}{}", i, map.byte_strides[i],
                               alignment, because);
        }
        if (map.byte_strides[i] >= kStrideLimit) {
            return fmt::format("globalStrides[{}] is {} bytes: it must be less than 2^40", i, map.byte_strides[i]);
        }
    }
    return {};
}

std::string check_box(const TensorMap& map) {
    std::uint64_t bits = element_bits(map.type);
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        if (map.box[i] < 1 || map.box[i] > kMaxBox) {
            return fmt::format("boxDim[{}] is {}: it must be in 1..{}", i, map.box[i], kMaxBox);
        }
        if (map.element_strides[i] < 1 || map.element_strides[i] > kMaxElementStride) {
            return fmt::format("elementStrides[{}] is {}: it must be in 1..{}{}", i, map.element_strides[i],
                               kMaxElementStride, i == 0 ? ", although it has no effect" : "");
        }
        bits *= box_count(map, i);
    }
    const std::uint64_t inner_bits = std::uint64_t{map.box[0]} * element_bits(map.type);
    if (map.interleave == TensorMapInterleave::none && inner_bits % 128 != 0) {
        return fmt::format("boxDim[0] is {} elements of {} bits: that must be a multiple of 16 bytes", map.box[0],
                           element_bits(map.type));
    }
    if (map.interleave == TensorMapInterleave::none && map.swizzle != SwizzleMode::none &&
        inner_bits > std::uint64_t{8} * pattern_of(map.swizzle).span_bytes) {
        return fmt::format(
            "boxDim[0] is {} elements of {} bits: with swizzle {} the inner dimension must be at most {} "
            "bytes",
            map.box[0], element_bits(map.type), name_of(map.swizzle), pattern_of(map.swizzle).span_bytes);
    }
    if (bits / 8 > kMaxBoxBytes) {
        return fmt::format(
            "boxDim makes a box of {} bytes: it must be at most {}, the shared memory of a "
            "multiprocessor",
            bits / 8, kMaxBoxBytes);
    }
    return {};
}

std::string check_interleave(const TensorMap& map) {
    if (map.interleave == TensorMapInterleave::none) return {};
    if (map.rank < 3) return fmt::format("tensorRank is {}: an interleaved layout needs at least 3", map.rank);
    if (map.interleave == TensorMapInterleave::b32 && map.swizzle != SwizzleMode::b32) {
        return fmt::format("swizzle is {}: 32-byte interleave needs 32B", name_of(map.swizzle));
    }
    return {};
}

std::string check_packed(const TensorMap& map) {
    if (!is_packed(map.type)) return {};
    const std::string_view type = name_of(map.type);
    if (!is_padded(map.type)) {
        return map.dims[0] % 2 != 0 ? fmt::format("globalDim[0] is {}: {} needs a multiple of 2", map.dims[0], type)
                                    : std::string{};
    }
    if (map.dims[0] % 128 != 0) {
        return fmt::format("globalDim[0] is {}: {} needs a multiple of 128", map.dims[0], type);
    }
    if (map.box[0] != 128) return fmt::format("boxDim[0] is {}: {} needs 128", map.box[0], type);
    if (map.type == TensorMapType::u6x16_align16 && map.interleave != TensorMapInterleave::none) {
        return fmt::format("interleave is {}: {} needs none", static_cast<unsigned>(map.interleave), type);
    }
    const bool known = map.swizzle == SwizzleMode::none || map.swizzle == SwizzleMode::b128 ||
                       map.swizzle == SwizzleMode::b128_atom_32 ||
                       (map.swizzle == SwizzleMode::b128_atom_64 && map.type == TensorMapType::u6x16_align16);
    return known ? std::string{} : fmt::format("swizzle is {}: {} does not allow it", name_of(map.swizzle), type);
}

std::string check_fill(const TensorMap& map) {
    if (map.fill == TensorMapFill::zero || is_floating(map.type)) return {};
    return fmt::format("oobFill is NaN: tensorDataType {} is no floating-point type that has it", name_of(map.type));
}

}  // namespace

std::string validate(const TensorMap& map, int architecture) {
    std::string fault = check_enumerations(map, architecture);
    if (fault.empty()) fault = check_tensor(map);
    if (fault.empty()) fault = check_box(map);
    if (fault.empty()) fault = check_interleave(map);
    if (fault.empty()) fault = check_packed(map);
    if (fault.empty()) fault = check_fill(map);
    return fault;
}

std::string unsupported(const TensorMap& map) {
    if (map.interleave != TensorMapInterleave::none) {
        return "interleaved tensor maps are not modelled: encode the map without interleave";
    }
    if (is_packed(map.type)) {
        return fmt::format("tensor maps of type {} are not modelled: copy the packed bytes as uint8",
                           name_of(map.type));
    }
    if (!is_modelled(map.swizzle)) {
        return fmt::format("swizzle {} is not modelled: no text says which lines it flips", name_of(map.swizzle));
    }
    return {};
}

}  // namespace block_attention::simulator
