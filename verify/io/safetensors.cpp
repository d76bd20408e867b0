#include "verify/io/safetensors.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "reference/dtype.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's data is little-endian and is read as it lies");

constexpr std::int64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadata = "__metadata__";

struct ElementType {
    std::string_view name;
    std::int64_t size;
};
constexpr std::array<ElementType, 16> kTypes{{{"BOOL", 1},
                                              {"U8", 1},
                                              {"I8", 1},
                                              {"F8_E5M2", 1},
                                              {"F8_E4M3", 1},
                                              {"F8_E8M0", 1},
                                              {"I16", 2},
                                              {"U16", 2},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I32", 4},
                                              {"U32", 4},
                                              {"F32", 4},
                                              {"F64", 8},
                                              {"I64", 8},
                                              {"U64", 8}}};

std::optional<std::int64_t> element_size(std::string_view dtype) {
    const auto* found =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const ElementType& type) { return type.name == dtype; });
    return found == kTypes.end() ? std::nullopt : std::optional(found->size);
}

/// What a header's claim lacks: thrown by the parser, which doesn't know the file's name.
struct HeaderFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::int64_t parse_size(std::string_view tensor, std::string_view what, const nlohmann::json& value) {
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kLargest) {
        throw HeaderFault(fmt::format("the tensor {} has the {} {}, which is not an integer of 0 to 2^63 - 1", tensor,
                                      what, value.dump()));
    }
    return value.get<std::int64_t>();
}

const nlohmann::json& member(std::string_view tensor, const nlohmann::json& entry, const char* key, bool well_typed) {
    if (!entry.is_object() || !entry.contains(key) || !well_typed) {
        throw HeaderFault(
            fmt::format("the header's entry for the tensor {} needs a dtype (text), a shape (list) and "
                        "data_offsets (two integers); it is {}",
                        tensor, entry.dump()));
    }
    return entry.at(key);
}

SafetensorsEntry parse_entry(const std::string& name, const nlohmann::json& json) {
    const auto typed = [&](const char* key, auto test) {
        return json.is_object() && json.contains(key) && test(json.at(key));
    };
    const nlohmann::json& dtype =
        member(name, json, "dtype", typed("dtype", [](const auto& j) { return j.is_string(); }));
    const nlohmann::json& shape =
        member(name, json, "shape", typed("shape", [](const auto& j) { return j.is_array(); }));
    const nlohmann::json& offsets = member(
        name, json, "data_offsets", typed("data_offsets", [](const auto& j) { return j.is_array() && j.size() == 2; }));
    SafetensorsEntry entry;
    entry.dtype = dtype.get<std::string>();
    for (const auto& size : shape) entry.shape.push_back(parse_size(name, "shape entry", size));
    entry.begin = parse_size(name, "data offset", offsets[0]);
    entry.end = parse_size(name, "data offset", offsets[1]);
    return entry;
}

/// Checks an entry against itself and the data's size.
void check_entry(std::string_view name, const SafetensorsEntry& entry, std::int64_t data_bytes) {
    const auto size = element_size(entry.dtype);
    if (!size) throw HeaderFault(fmt::format("the tensor {} has the unknown dtype {}", name, entry.dtype));
    if (entry.end < entry.begin || entry.end > data_bytes) {
        throw HeaderFault(
            fmt::format("the tensor {} lies at bytes {} to {}, but the file holds {} bytes of data; it may be "
                        "truncated",
                        name, entry.begin, entry.end, data_bytes));
    }
    std::int64_t bytes = *size;
    bool fits = true;
    for (const std::int64_t extent : entry.shape) fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
    if (!fits || bytes != entry.bytes()) {
        throw HeaderFault(fmt::format("the tensor {} of {} {} does not fill bytes {} to {}", name, entry.dtype,
                                      shape_text(entry.shape), entry.begin, entry.end));
    }
}

nlohmann::json parse_json(const std::string& header) {
    std::set<std::string> keys;
    const auto refuse_repeated_keys = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        const bool tensor_key = depth == 1 && event == nlohmann::json::parse_event_t::key;
        if (tensor_key && !keys.insert(parsed.get<std::string>()).second) {
            throw HeaderFault(fmt::format("the header names the tensor {} twice", parsed.get<std::string>()));
        }
        return true;
    };
    try {
        nlohmann::json json = nlohmann::json::parse(header, refuse_repeated_keys);
        if (!json.is_object()) throw HeaderFault("the header is not a JSON object");
        return json;
    } catch (const nlohmann::json::exception& error) {
        throw HeaderFault(fmt::format("the header is not JSON: {}", error.what()));
    }
}

}  // namespace

std::int64_t SafetensorsEntry::elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), stream_(path, std::ios::binary) {
    if (!stream_) fail(std::strerror(errno));
    if (std::filesystem::is_directory(path)) fail("it is a directory");
    stream_.seekg(0, std::ios::end);
    const auto file_bytes = static_cast<std::int64_t>(stream_.tellg());
    stream_.seekg(0);
    if (file_bytes < kLengthBytes) {
        fail(fmt::format("it has {} bytes, fewer than the {} of a header's length", file_bytes, kLengthBytes));
    }
    std::uint64_t header_bytes = 0;
    stream_.read(reinterpret_cast<char*>(&header_bytes), kLengthBytes);
    if (header_bytes > kLongestHeader) {
        fail(fmt::format("its header would be {} bytes long; the format allows {}", header_bytes, kLongestHeader));
    }
    data_begin_ = kLengthBytes + static_cast<std::int64_t>(header_bytes);
    if (data_begin_ > file_bytes) {
        fail(fmt::format("it is truncated: its header should end at byte {}, the file ends at {}", data_begin_,
                         file_bytes));
    }
    std::string header(static_cast<std::size_t>(header_bytes), '\0');
    stream_.read(header.data(), static_cast<std::streamsize>(header.size()));
    if (!stream_) fail("its header cannot be read");
    try {
        parse_header(header, file_bytes - data_begin_);
        check_layout(file_bytes - data_begin_);
    } catch (const HeaderFault& fault) {
        fail(fault.what());
    }
}

void SafetensorsFile::parse_header(const std::string& header, std::int64_t data_bytes) {
    const nlohmann::json json = parse_json(header);
    for (const auto& [name, value] : json.items()) {
        if (name == kMetadata) {
            if (!value.is_object()) throw HeaderFault("the header's __metadata__ is not an object");
            for (const auto& [key, text] : value.items()) {
                if (!text.is_string()) {
                    throw HeaderFault(fmt::format("the header's __metadata__ entry {} is not a text", key));
                }
                metadata_.emplace(key, text.get<std::string>());
            }
            continue;
        }
        SafetensorsEntry entry = parse_entry(name, value);
        check_entry(name, entry, data_bytes);
        entries_.emplace(name, std::move(entry));
    }
}

/// The tensors must fill the data without overlap and without a hole.
void SafetensorsFile::check_layout(std::int64_t data_bytes) const {
    std::vector<std::pair<std::string_view, const SafetensorsEntry*>> order;
    for (const auto& [name, entry] : entries_) order.emplace_back(name, &entry);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
    });
    std::int64_t end = 0;
    std::string_view before;
    for (const auto& [name, entry] : order) {
        if (entry->begin < end) {
            throw HeaderFault(
                fmt::format("the tensors {} and {} overlap at byte {} of the data", before, name, entry->begin));
        }
        if (entry->begin > end) {
            throw HeaderFault(fmt::format("bytes {} to {} of the data belong to no tensor", end, entry->begin));
        }
        end = entry->end;
        before = name;
    }
    if (end != data_bytes) {
        throw HeaderFault(fmt::format("bytes {} to {} of the data belong to no tensor", end, data_bytes));
    }
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
    if (const SafetensorsEntry* entry = find(name)) return *entry;
    std::vector<std::string_view> names;
    for (const auto& [key, entry] : entries_) names.push_back(key);
    fail(fmt::format("there is no tensor {}; it holds {}", name,
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

void SafetensorsFile::read(const SafetensorsEntry& entry, std::span<std::byte> to) {
    stream_.seekg(data_begin_ + entry.begin);
    stream_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    if (!stream_) fail("its data cannot be read");
}

std::vector<std::int64_t> SafetensorsFile::read_integers(std::string_view name) {
    const SafetensorsEntry& entry = at(name);
    const auto read_as = [&]<typename T>(T) {
        std::vector<T> values(static_cast<std::size_t>(entry.elements()));
        read(entry, std::as_writable_bytes(std::span(values)));
        return std::vector<std::int64_t>(values.begin(), values.end());
    };
    if (entry.dtype == "I32") return read_as(std::int32_t{});
    if (entry.dtype == "I64") return read_as(std::int64_t{});
    fail(fmt::format("the tensor {} is {}; integers are I32 or I64", name, entry.dtype));
}

double SafetensorsFile::read_number(std::string_view name) {
    const SafetensorsEntry& entry = at(name);
    if (entry.elements() != 1) {
        fail(fmt::format("the tensor {} has the shape {}; it must hold one number", name, shape_text(entry.shape)));
    }
    std::array<std::byte, sizeof(double)> bytes{};
    const auto read_bytes = [&] { read(entry, std::span(bytes).first(static_cast<std::size_t>(entry.bytes()))); };
    if (entry.dtype == "F64") {
        read_bytes();
        return std::bit_cast<double>(bytes);
    }
    for (const auto& [type, dtype] : {std::pair("F16", DType::fp16), {"BF16", DType::bf16}, {"F32", DType::fp32}}) {
        if (entry.dtype != type) continue;
        read_bytes();
        return load_element(dtype, bytes.data());
    }
    fail(fmt::format("the tensor {} is {}; a number is F16, BF16, F32 or F64", name, entry.dtype));
}

void SafetensorsFile::fail(std::string_view fault) const {
    throw UsageError(fmt::format("{}: {}", path_.string(), fault));
}

void write_safetensors(std::ostream& stream, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
    std::size_t offset = 0;
    for (const NamedTensor& tensor : tensors) {
        const std::size_t end = offset + tensor.bytes.size();
        header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // the format pads its header with spaces
    const std::uint64_t length = text.size();
    stream.write(reinterpret_cast<const char*>(&length), kLengthBytes);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const NamedTensor& tensor : tensors) {
        stream.write(reinterpret_cast<const char*>(tensor.bytes.data()),
                     static_cast<std::streamsize>(tensor.bytes.size()));
    }
}

}  // namespace block_attention
