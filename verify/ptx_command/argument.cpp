#include "verify/ptx_command/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "verify/ptx_command/element.h"

namespace block_attention {
namespace {

constexpr std::uint64_t kMaxBytes = 32764;  // of all parameters of a kernel (PTX ISA 5.2.4)
constexpr unsigned kMaxDepth = 16;
constexpr std::uint64_t kPointerBytes = 8;
constexpr std::uint64_t kTensorMapAlignment = 128;  // CUtensorMap in cuda.h 13.0

/// A scalar's key: the types of elements, and bits without a type.
struct ScalarKey {
    std::string name;
    ElementType type;
};

const std::vector<ScalarKey>& scalar_keys() {
    static const std::vector<ScalarKey> kScalarKeys = [] {
        std::vector<ScalarKey> list;
        for (const std::string& name : element_type_names()) list.push_back({name, *parse_element_type(name)});
        list.push_back({"b8", ElementType::u8});
        list.push_back({"b16", ElementType::u16});
        list.push_back({"b32", ElementType::u32});
        list.push_back({"b64", ElementType::u64});
        return list;
    }();
    return kScalarKeys;
}

const std::vector<std::string>& keys() {
    static const std::vector<std::string> kKeys = [] {
        std::vector<std::string> list{"buffer", "offset", "bytes", "tensor_map", "struct", "at"};
        for (const ScalarKey& key : scalar_keys()) list.push_back(key.name);
        return list;
    }();
    return kKeys;
}

Field read_scalar(const JsonValue& value, const ScalarKey& key) {
    Field field;
    std::vector<std::byte> bytes;
    if (value.is_array()) {
        for (const JsonValue& element : value.elements()) append_element(element, key.type, bytes);
        field.what = fmt::format("a list of {} {}", bytes.size() / size_of(key.type), key.name);
    } else {
        append_element(value, key.type, bytes);
        field.what = fmt::format("a {}", key.name);
    }
    field.bytes = bytes.size();
    field.alignment = size_of(key.type);
    field.value = std::move(bytes);
    return field;
}

Field read_raw_bytes(const JsonValue& value) {
    const std::string text = value.string();
    std::vector<std::byte> bytes;
    std::optional<unsigned> high;
    for (const char c : text) {
        if (c == ' ' || c == '_') continue;
        constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
        const std::size_t place = kDigits.find(c);
        if (place == std::string_view::npos) value.fail(fmt::format("'{}' is no hexadecimal digit", c));
        const auto digit = static_cast<unsigned>(place % 16);
        if (high) bytes.push_back(static_cast<std::byte>(*high * 16 + digit));
        high = high ? std::nullopt : std::optional(digit);
    }
    if (high) value.fail("an odd number of hexadecimal digits; a byte has two");
    Field field;
    field.what = "bytes";
    field.bytes = bytes.size();
    field.value = std::move(bytes);
    return field;
}

Field read_pointer(const JsonValue& object, const ArgumentContext& context) {
    PointerValue pointer;
    pointer.buffer = find_buffer(object.at("buffer"), context.buffers);
    if (const auto offset = object.find("offset")) {
        constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
        pointer.byte_offset = static_cast<std::int64_t>(offset->integer(-kMost, static_cast<std::uint64_t>(kMost)));
    }
    return {.value = pointer, .what = "a pointer", .bytes = kPointerBytes, .alignment = kPointerBytes};
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class ArgumentReader {
  public:
    explicit ArgumentReader(const ArgumentContext& context) : context_(context) {}

    Field read(const JsonValue& object, unsigned depth) const {
        object.allow(keys());
        std::vector<std::string> kinds;
        for (const auto& [name, value] : object.members()) {
            if (name != "at" && name != "offset") kinds.push_back(name);
        }
        if (kinds.size() != 1) {
            object.fail(
                fmt::format("{}; an argument is one of \"buffer\", \"tensor_map\", \"struct\", \"bytes\" or a "
                            "type such as \"u32\"",
                            kinds.empty() ? "no value" : fmt::format("the keys {}", fmt::join(kinds, ", "))));
        }
        if (object.find("offset") && kinds.front() != "buffer") {
            object.fail("\"offset\" is for a \"buffer\"; a field's place in a structure is \"at\"");
        }
        if (object.find("at") && depth == 0) {
            object.fail("\"at\" is for the fields of a structure; an argument lies where the kernel has its parameter");
        }
        return read_kind(object, kinds.front(), depth);
    }

  private:
    Field read_kind(const JsonValue& object, const std::string& kind, unsigned depth) const {
        if (kind == "buffer") return read_pointer(object, context_);
        const JsonValue value = object.at(kind);
        if (kind == "bytes") return read_raw_bytes(value);
        if (kind == "struct") return read_structure(value, depth);
        if (kind == "tensor_map") {
            return {.value = read_tensor_map(value, context_.buffers, context_.architecture),
                    .what = "a tensor map",
                    .bytes = simulator::kTensorMapBytes,
                    .alignment = kTensorMapAlignment};
        }
        const auto& scalars = scalar_keys();
        return read_scalar(value, *std::find_if(scalars.begin(), scalars.end(),
                                                [&](const ScalarKey& key) { return key.name == kind; }));
    }

    Field read_structure(const JsonValue& list, unsigned depth) const {
        if (depth == kMaxDepth) list.fail(fmt::format("structures nest at most {} deep", kMaxDepth));
        StructureValue structure;
        Field whole;
        std::uint64_t end = 0;
        for (const JsonValue& element : list.elements()) {
            Field field = read(element, depth + 1);
            field.offset = round_up(end, field.alignment);
            if (const auto at = element.find("at")) field.offset = at->unsigned_integer(0, kMaxBytes);
            for (const Field& earlier : structure.fields) {
                if (field.offset < earlier.offset + earlier.bytes && earlier.offset < field.offset + field.bytes) {
                    element.fail(fmt::format("bytes {} to {} overlap an earlier field, bytes {} to {}", field.offset,
                                             field.offset + field.bytes - 1, earlier.offset,
                                             earlier.offset + earlier.bytes - 1));
                }
            }
            end = field.offset + field.bytes;
            if (end > kMaxBytes) list.fail(fmt::format("more than {} bytes, the limit of all parameters", kMaxBytes));
            whole.bytes = std::max(whole.bytes, end);
            whole.alignment = std::max(whole.alignment, field.alignment);
            structure.fields.push_back(std::move(field));
        }
        // The padding of the whole is up to the parameter.
        if (depth > 0) whole.bytes = round_up(whole.bytes, whole.alignment);
        whole.what = "a structure";
        whole.value = std::move(structure);
        return whole;
    }

    const ArgumentContext& context_;
};

/// Writes each kind of value.
struct Encoder {
    std::span<const std::uint64_t> addresses;
    std::span<std::byte> to;

    void operator()(const std::vector<std::byte>& bytes) const { std::copy(bytes.begin(), bytes.end(), to.begin()); }
    void operator()(const PointerValue& pointer) const {
        const std::uint64_t address = addresses[pointer.buffer] + static_cast<std::uint64_t>(pointer.byte_offset);
        std::memcpy(to.data(), &address, sizeof address);
    }
    void operator()(const TensorMapFields& fields) const {
        const simulator::TensorMapBytes bytes = encode(fields, addresses[fields.buffer]);
        std::copy(bytes.begin(), bytes.end(), to.begin());
    }
    void operator()(const StructureValue& structure) const {
        for (const Field& field : structure.fields) {
            block_attention::encode(field, addresses, to.subspan(field.offset, field.bytes));
        }
    }
};

}  // namespace

Field read_argument(const JsonValue& object, const ArgumentContext& context) {
    return ArgumentReader(context).read(object, 0);
}

void encode(const Field& field, std::span<const std::uint64_t> buffer_addresses, std::span<std::byte> to) {
    std::visit(Encoder{buffer_addresses, to}, field.value);
}

}  // namespace block_attention
