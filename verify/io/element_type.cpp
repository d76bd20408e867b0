#include "verify/io/element_type.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "reference/dtype.h"

namespace block_attention {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "a long double must hold every 64-bit integer");

constexpr std::size_t kTypes = 12;
constexpr std::array<std::size_t, kTypes> kSizes{1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};

const std::array<std::string, kTypes>& names() {
    static const std::array<std::string, kTypes> kNames{"u8",  "u16", "u32", "u64",  "s8",  "s16",
                                                        "s32", "s64", "f16", "bf16", "f32", "f64"};
    return kNames;
}

std::size_t index_of(ElementType type) { return static_cast<std::size_t>(type); }

/// fp32 for every type that the reference doesn't know.
DType dtype_of(ElementType type) {
    if (type == ElementType::f16) return DType::fp16;
    return type == ElementType::bf16 ? DType::bf16 : DType::fp32;
}

template <typename T>
T load_as(const std::byte* data) {
    T value;
    std::memcpy(&value, data, sizeof(T));
    return value;
}

}  // namespace

std::span<const std::string> element_type_names() { return names(); }

std::string_view name_of(ElementType type) { return names()[index_of(type)]; }

std::optional<ElementType> parse_element_type(std::string_view name) {
    const auto* const found = std::find(names().begin(), names().end(), name);
    if (found == names().end()) return std::nullopt;
    return static_cast<ElementType>(found - names().begin());
}

std::size_t size_of(ElementType type) { return kSizes[index_of(type)]; }

bool is_floating(ElementType type) { return type >= ElementType::f16; }

bool is_signed(ElementType type) { return type >= ElementType::s8; }

std::uint64_t largest_exact_integer(ElementType type) {
    if (type == ElementType::f64) return std::uint64_t{1} << std::numeric_limits<double>::digits;
    if (is_floating(type)) return std::uint64_t{1} << static_cast<unsigned>(format_of(dtype_of(type)).significand_bits);
    const auto bits = static_cast<unsigned>(8 * size_of(type) - (is_signed(type) ? 1 : 0));
    return std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
}

long double load_element(ElementType type, const std::byte* data) {
    switch (type) {
        case ElementType::u8:
            return load_as<std::uint8_t>(data);
        case ElementType::u16:
            return load_as<std::uint16_t>(data);
        case ElementType::u32:
            return load_as<std::uint32_t>(data);
        case ElementType::u64:
            return static_cast<long double>(load_as<std::uint64_t>(data));
        case ElementType::s8:
            return load_as<std::int8_t>(data);
        case ElementType::s16:
            return load_as<std::int16_t>(data);
        case ElementType::s32:
            return load_as<std::int32_t>(data);
        case ElementType::s64:
            return static_cast<long double>(load_as<std::int64_t>(data));
        case ElementType::f64:
            return load_as<double>(data);
        case ElementType::f16:
        case ElementType::bf16:
        case ElementType::f32:
            return load_element(dtype_of(type), data);
    }
    return 0;
}

void store_floating(ElementType type, double value, std::byte* data) {
    if (type == ElementType::f64) {
        std::memcpy(data, &value, sizeof value);
    } else {
        store_element(dtype_of(type), data, round_to(dtype_of(type), value));
    }
}

void store_integer(ElementType type, std::uint64_t bits, std::byte* data) {
    for (std::size_t i = 0; i < size_of(type); ++i) data[i] = static_cast<std::byte>(bits >> (8 * i));
}

}  // namespace block_attention
