#include "verify/ptx_command/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "reference/parallel.h"
#include "reference/tiles.h"
#include "verify/cases/random.h"
#include "verify/ptx_command/element.h"
#include "verify/ptx_command/memory_limit.h"

namespace block_attention {
namespace {

constexpr std::size_t kMaxRank = 32;  // NumPy 1's own limit

const std::array<std::string, 4>& keys() {
    static const std::array<std::string, 4> kKeys{"dtype", "shape", "content", "seed"};
    return kKeys;
}

/// Contents that take no parameters, as a text.
const std::array<std::string, 4>& plain_contents() {
    static const std::array<std::string, 4> kNames{"poison", "zeros", "indices", "normal"};
    return kNames;
}

/// Contents with parameters, as the key of an object.
const std::array<std::string, 5>& contents_with_parameters() {
    static const std::array<std::string, 5> kNames{"normal", "uniform", "integers", "values", "npy"};
    return kNames;
}

std::vector<std::int64_t> read_shape(const JsonValue& value) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto extent = [](const JsonValue& one) { return static_cast<std::int64_t>(one.unsigned_integer(0, kMost)); };
    if (!value.is_array()) return {extent(value)};
    std::vector<std::int64_t> shape;
    for (const JsonValue& element : value.elements()) shape.push_back(extent(element));
    if (shape.size() > kMaxRank) value.fail(fmt::format("{} extents; the most are {}", shape.size(), kMaxRank));
    return shape;
}

std::array<JsonValue, 2> read_pair(const JsonValue& value, std::string_view what) {
    const std::vector<JsonValue> elements = value.elements();
    if (elements.size() != 2) value.fail(fmt::format("a list of {}: {}", elements.size(), what));
    return {elements[0], elements[1]};
}

void require_floating(const JsonValue& value, ElementType type, std::string_view content) {
    if (is_floating(type)) return;
    value.fail(fmt::format("{} numbers are no {}: take {{\"integers\": [least, largest]}}", content, name_of(type)));
}

void read_integers(const JsonValue& value, ElementType type, Content& content) {
    const auto [least, largest] = read_pair(value, "integers take [least, largest]");
    const std::uint64_t most = largest_exact_integer(type);
    const bool has_negative = is_signed(type);
    const std::int64_t lowest = !has_negative       ? 0
                                : is_floating(type) ? -static_cast<std::int64_t>(most)
                                                    : static_cast<std::int64_t>(~most);
    content.kind = Content::Kind::integers;
    content.least = static_cast<std::int64_t>(least.integer(lowest, most));
    content.span = largest.integer(lowest, most) - static_cast<std::uint64_t>(content.least);
    // As numbers, the larger of two integers is the one that is not below the other.
    const bool descends = largest.is_negative() != least.is_negative()
                              ? largest.is_negative()
                              : largest.integer(lowest, most) < least.integer(lowest, most);
    if (descends) value.fail("the range descends; write the smaller integer first");
}

void check_like_file(const JsonValue& value, const NpyArray& file, const ArraySpec& array, bool typed, bool shaped) {
    const bool bits = array.type == ElementType::bf16 && file.type == ElementType::u16;  // how many tools save bf16
    if (typed && file.type != array.type && !bits) {
        value.fail(fmt::format("the file holds {}, but the buffer is of {}", name_of(file.type), name_of(array.type)));
    }
    if (shaped && file.shape != array.shape) {
        value.fail(fmt::format("the file holds {}, but the buffer is {}", describe_array(file.type, file.shape),
                               describe_array(typed ? array.type : file.type, array.shape)));
    }
}

/// What is known of an array while its object is read.
struct Partial {
    ArraySpec array;
    bool typed = false;
    bool shaped = false;
    const ArraySpec* like = nullptr;

    /// Falls back on what the array is to be like, if there is such a thing.
    void settle_type() {
        if (typed || like == nullptr) return;
        array.type = like->type;
        typed = true;
    }
    void settle_shape() {
        if (shaped || like == nullptr) return;
        array.shape = like->shape;
        shaped = true;
    }
};

void read_values(const JsonValue& value, Partial& partial) {
    ArraySpec& array = partial.array;
    partial.settle_shape();
    for (const JsonValue& element : value.elements()) append_element(element, array.type, array.content.bytes);
    const auto count = static_cast<std::int64_t>(array.content.bytes.size() / size_of(array.type));
    if (!partial.shaped) array.shape = {count};
    if (partial.shaped && element_count(array.shape) != count) {
        value.fail(fmt::format("{} values, but the buffer is {}", count, describe_array(array.type, array.shape)));
    }
    partial.shaped = true;
}

void read_file(const JsonValue& value, const std::filesystem::path& folder, Partial& partial) {
    NpyArray file = read_npy(folder / value.string());
    ArraySpec& array = partial.array;
    check_like_file(value, file, array, partial.typed, partial.shaped);
    // Bits of a bf16 are often saved as u2, and so are they meant beside a buffer of bf16.
    const bool bits = partial.like != nullptr && partial.like->type == ElementType::bf16;
    if (!partial.typed) array.type = bits && file.type == ElementType::u16 ? ElementType::bf16 : file.type;
    array.shape = std::move(file.shape);
    array.content.bytes = std::move(file.bytes);
    partial.typed = partial.shaped = true;
}

void read_content(const JsonValue& value, const std::filesystem::path& folder, Partial& partial) {
    Content& content = partial.array.content;
    const auto need_type = [&] {
        partial.settle_type();
        if (!partial.typed) value.fail("this content needs a \"dtype\" beside it");
    };
    if (!value.is_object()) {
        constexpr std::array kKinds{Content::Kind::poison, Content::Kind::zeros, Content::Kind::indices,
                                    Content::Kind::normal};
        content.kind = kKinds.at(value.choice(plain_contents()));
        need_type();
        if (content.kind == Content::Kind::normal) require_floating(value, partial.array.type, "normal");
        content.range = {0, 1};
        return;
    }
    value.allow(contents_with_parameters());
    const auto members = value.members();
    if (members.size() != 1) value.fail(fmt::format("{} keys; a content has one", members.size()));
    const auto& [name, parameters] = members.front();
    if (name == "npy" || name == "values") {
        content.kind = Content::Kind::given;
        if (name == "npy") return read_file(parameters, folder, partial);
        need_type();
        return read_values(parameters, partial);
    }
    need_type();
    if (name == "integers") return read_integers(parameters, partial.array.type, content);
    require_floating(value, partial.array.type, name);
    content.kind = name == "normal" ? Content::Kind::normal : Content::Kind::uniform;
    const auto [first, second] =
        read_pair(parameters, name == "normal" ? "normal takes [mean, deviation]" : "uniform takes [least, end]");
    content.range = {first.number(), second.number()};
}

}  // namespace

std::span<const std::string> array_keys() { return keys(); }

ArraySpec read_array(const JsonValue& object, const std::filesystem::path& folder, const ArraySpec* like) {
    Partial partial;
    partial.like = like;
    ArraySpec& array = partial.array;
    if (const auto dtype = object.find("dtype")) {
        array.type = static_cast<ElementType>(dtype->choice(element_type_names()));
        partial.typed = true;
    }
    if (const auto shape = object.find("shape")) {
        array.shape = read_shape(*shape);
        partial.shaped = true;
    }
    if (const auto content = object.find("content")) read_content(*content, folder, partial);
    if (const auto seed = object.find("seed")) {
        array.content.seed = seed->unsigned_integer(0, std::numeric_limits<std::uint64_t>::max());
    }
    partial.settle_type();
    partial.settle_shape();
    if (!partial.typed) object.fail("the key \"dtype\" is missing");
    if (!partial.shaped) object.fail("the key \"shape\" is missing");
    const auto count = element_count(array.shape);
    if (!count || static_cast<std::uint64_t>(*count) > memory_limit() / size_of(array.type)) {
        object.fail(fmt::format("{} takes more than the {:.1f} GiB of this machine",
                                describe_array(array.type, array.shape), in_gib(memory_limit())));
    }
    array.elements = *count;
    return std::move(partial.array);
}

std::vector<std::byte> make_content(const ArraySpec& array, std::uint64_t run_seed, std::uint64_t stream) {
    const Content& content = array.content;
    if (content.kind == Content::Kind::given) return content.bytes;
    std::vector<std::byte> bytes(array.bytes());
    if (content.kind == Content::Kind::zeros) return bytes;
    // Buffers with a seed of their own share a stream: equal seeds give equal content.
    const CounterRandom random(content.seed.value_or(run_seed), content.seed ? 0 : stream + 1);
    const std::size_t size = size_of(array.type);
    const bool floating = is_floating(array.type);
    const auto store = [&](std::uint64_t i) {
        std::byte* element = bytes.data() + i * size;
        std::uint64_t integer = i;
        double number = static_cast<double>(i);
        if (content.kind == Content::Kind::integers) {
            const std::uint64_t count = content.span + 1;  // 0 for all 2^64
            const std::uint64_t draw = random.bits(i);
            integer = static_cast<std::uint64_t>(content.least) + (count == 0 ? draw : draw % count);
            number = static_cast<double>(static_cast<std::int64_t>(integer));
        } else if (content.kind == Content::Kind::normal) {
            number = content.range[0] + content.range[1] * static_cast<double>(random.normal(i));
        } else if (content.kind == Content::Kind::uniform) {
            const double unit = std::ldexp(static_cast<double>(random.bits(i) >> 11), -53);
            number = content.range[0] + unit * (content.range[1] - content.range[0]);
        }
        if (floating) {
            store_floating(array.type, number, element);
        } else {
            store_integer(array.type, integer, element);
        }
    };
    constexpr std::int64_t kChunk = std::int64_t{1} << 16;
    parallel_for(tiles_in(array.elements, kChunk), [&](std::int64_t chunk) {
        const std::int64_t end = std::min(array.elements, (chunk + 1) * kChunk);
        for (std::int64_t i = chunk * kChunk; i < end; ++i) store(static_cast<std::uint64_t>(i));
    });
    return bytes;
}

}  // namespace block_attention
