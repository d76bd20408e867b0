#include "verify/ptx_command/tensor_map_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace block_attention {
namespace {

using simulator::kMaxTensorRank;
using simulator::TensorMap;
using simulator::TensorMapType;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

const std::array<std::string, 11>& keys() {
    static const std::array<std::string, 11> kKeys{"buffer",       "offset", "type",           "dims",
                                                   "strides",      "box",    "swizzle",        "interleave",
                                                   "l2_promotion", "fill",   "element_strides"};
    return kKeys;
}

// The words of each enumeration, in its order.
const std::array<std::string, 7>& swizzles() {
    static const std::array<std::string, 7> kWords{
        "none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
    return kWords;
}
const std::array<std::string, 3>& interleaves() {
    static const std::array<std::string, 3> kWords{"none", "16B", "32B"};
    return kWords;
}
const std::array<std::string, 4>& l2_promotions() {
    static const std::array<std::string, 4> kWords{"none", "64B", "128B", "256B"};
    return kWords;
}
const std::array<std::string, 2>& fills() {
    static const std::array<std::string, 2> kWords{"zero", "nan"};
    return kWords;
}
const std::vector<std::string>& types() {
    static const std::vector<std::string> kWords = [] {
        std::vector<std::string> words;
        for (auto type = TensorMapType::uint8; type <= TensorMapType::u6x16_align16;
             type = static_cast<TensorMapType>(static_cast<unsigned>(type) + 1)) {
            words.emplace_back(name_of(type));
        }
        return words;
    }();
    return kWords;
}

template <typename T>
T read_word(const JsonValue& object, const std::string& key, std::span<const std::string> words, T otherwise) {
    const auto value = object.find(key);
    return value ? static_cast<T>(value->choice(words)) : otherwise;
}

TensorMapType type_of(const JsonValue& object, ElementType type) {
    switch (type) {
        case ElementType::u8:
            return TensorMapType::uint8;
        case ElementType::u16:
            return TensorMapType::uint16;
        case ElementType::u32:
            return TensorMapType::uint32;
        case ElementType::s32:
            return TensorMapType::int32;
        case ElementType::u64:
            return TensorMapType::uint64;
        case ElementType::s64:
            return TensorMapType::int64;
        case ElementType::f16:
            return TensorMapType::float16;
        case ElementType::bf16:
            return TensorMapType::bfloat16;
        case ElementType::f32:
            return TensorMapType::float32;
        case ElementType::f64:
            return TensorMapType::float64;
        case ElementType::s8:
        case ElementType::s16:
            break;
    }
    object.fail(fmt::format("tensor maps have no type for a buffer of {}; say \"type\": \"uint{}\"", name_of(type),
                            8 * size_of(type)));
}

/// The list behind a key, whose entries are in range and as many as `count` says; nothing if the key is missing.
std::optional<std::vector<std::uint64_t>> read_list(const JsonValue& object, const std::string& key,
                                                    std::optional<std::size_t> count, std::string_view because,
                                                    std::uint64_t most) {
    const auto value = object.find(key);
    if (!value) return std::nullopt;
    std::vector<std::uint64_t> list;
    for (const JsonValue& element : value->elements()) list.push_back(element.unsigned_integer(0, most));
    if (count && list.size() != *count) {
        value->fail(fmt::format("{} entries; there must be {}, {}", list.size(), *count, because));
    }
    return list;
}

void read_dims(const JsonValue& object, const BufferSpec& buffer, TensorMap& map) {
    auto dims = read_list(object, "dims", std::nullopt, "", kMost);
    if (!dims) dims.emplace(buffer.array.shape.rbegin(), buffer.array.shape.rend());
    if (dims->empty() || dims->size() > kMaxTensorRank) {
        object.fail(fmt::format("dims has {} entries; a tensor map has 1 to {}", dims->size(), kMaxTensorRank));
    }
    map.rank = static_cast<std::uint32_t>(dims->size());
    std::copy(dims->begin(), dims->end(), map.dims.begin());
}

void read_strides(const JsonValue& object, TensorMap& map) {
    const std::size_t count = map.rank - 1;
    const auto strides = read_list(object, "strides", count, "one in bytes for each of dims but the first", kMost);
    if (strides) {
        std::copy(strides->begin(), strides->end(), map.byte_strides.begin());
        return;
    }
    std::uint64_t bits = simulator::element_bits(map.type);
    for (std::size_t i = 0; i < count; ++i) {
        bits *= map.dims[i];
        map.byte_strides[i] = bits / 8;
    }
}

/// The key that the parameter of cuTensorMapEncodeTiled comes from, at the beginning of what validate() says.
std::string_view key_of(std::string_view message) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kParameters{
        {{"tensorDataType", "type"},
         {"tensorRank", "dims"},
         {"globalAddress", "offset"},
         {"globalDim", "dims"},
         {"globalStrides", "strides"},
         {"boxDim", "box"},
         {"elementStrides", "element_strides"},
         {"l2Promotion", "l2_promotion"},
         {"oobFill", "fill"},
         {"interleave", "interleave"}}};
    for (const auto& [parameter, key] : kParameters) {
        if (message.starts_with(parameter)) return key;
    }
    return "swizzle";
}

}  // namespace

TensorMapFields read_tensor_map(const JsonValue& object, const std::vector<BufferSpec>& buffers, int architecture) {
    object.allow(keys());
    TensorMapFields fields;
    fields.buffer = find_buffer(object.at("buffer"), buffers);
    const BufferSpec& buffer = buffers[fields.buffer];
    if (const auto offset = object.find("offset")) fields.byte_offset = offset->unsigned_integer(0, kMost);
    TensorMap& map = fields.map;
    const auto type = object.find("type");
    map.type = type ? static_cast<TensorMapType>(type->choice(types())) : type_of(object, buffer.array.type);
    map.swizzle = read_word(object, "swizzle", swizzles(), map.swizzle);
    map.interleave = read_word(object, "interleave", interleaves(), map.interleave);
    map.l2_promotion = read_word(object, "l2_promotion", l2_promotions(), map.l2_promotion);
    map.fill = read_word(object, "fill", fills(), map.fill);
    read_dims(object, buffer, map);
    read_strides(object, map);
    constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
    const auto box = read_list(object, "box", map.rank, "one for each of dims", kMost32);
    if (!box) object.fail("the key \"box\" is missing");
    std::copy(box->begin(), box->end(), map.box.begin());
    const auto steps = read_list(object, "element_strides", map.rank, "one for each of dims", kMost32);
    if (steps) std::copy(steps->begin(), steps->end(), map.element_strides.begin());

    map.address = fields.byte_offset;  // buffers are aligned to 256 bytes, so it says all about alignment
    std::string refusal = simulator::validate(map, architecture);
    if (!refusal.empty()) object.fail(fmt::format("\"{}\" is refused: {}", key_of(refusal), refusal));
    refusal = simulator::unsupported(map);
    if (!refusal.empty()) object.fail(refusal);
    return fields;
}

simulator::TensorMapBytes encode(const TensorMapFields& fields, std::uint64_t buffer_address) {
    TensorMap map = fields.map;
    map.address = buffer_address + fields.byte_offset;
    return simulator::encode_tensor_map(map);
}

}  // namespace block_attention
