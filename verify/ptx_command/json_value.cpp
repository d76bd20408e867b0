#include "verify/ptx_command/json_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "verify/io/text_file.h"
#include "verify/suggest.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using Json = nlohmann::ordered_json;

/// The value in short, for messages.
std::string shown(const Json& json) {
    constexpr std::size_t kLongest = 60;
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
    return text;
}

/// Of byte number `byte`, counted from 1. The parser's own column is 0 where a line ends a number.
std::string line_and_column(std::string_view text, std::size_t byte) {
    const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = 1 + before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
    return fmt::format("line {}, column {}", line, column);
}

/// What the parser says, without its exception's number and its own position: "[json.exception.parse_error.101] parse
/// error at line 3, column 5: syntax error while parsing ...".
std::string_view shortened(std::string_view what) {
    for (const std::string_view end : {"] ", "column "}) {
        if (const std::size_t at = what.find(end); at != std::string_view::npos) what.remove_prefix(at + end.size());
    }
    const std::size_t digits = what.find_first_not_of("0123456789");
    return what.substr(digits).starts_with(": ") ? what.substr(digits + 2) : what;
}

/// Notices a member that an object names twice, which the parser itself lets pass.
class MemberNames {
  public:
    bool operator()(int /*depth*/, Json::parse_event_t event, const Json& parsed) {
        if (event == Json::parse_event_t::object_start) names_.emplace_back();
        if (event == Json::parse_event_t::object_end) names_.pop_back();
        if (event == Json::parse_event_t::key && !names_.back().insert(parsed.get<std::string>()).second) {
            throw UsageError(fmt::format("an object names {} twice", shown(parsed)));
        }
        return true;
    }

  private:
    std::vector<std::set<std::string>> names_;  ///< of the objects that are open
};

}  // namespace

void JsonValue::fail(std::string_view message) const { throw UsageError(fmt::format("{}: {}", place(), message)); }

void JsonValue::fail_expected(std::string_view what) const { fail(fmt::format("{} is not {}", shown(*json_), what)); }

std::string JsonValue::place() const { return path_.empty() ? *file_ : fmt::format("{}: {}", *file_, path_); }

bool JsonValue::is_string() const { return json_->is_string(); }
bool JsonValue::is_array() const { return json_->is_array(); }
bool JsonValue::is_object() const { return json_->is_object(); }
bool JsonValue::is_integer() const { return json_->is_number_integer(); }
bool JsonValue::is_negative() const { return json_->is_number() && json_->get<double>() < 0; }

std::string JsonValue::string() const {
    if (!is_string()) fail_expected("a text");
    return json_->get<std::string>();
}

std::uint64_t JsonValue::unsigned_integer(std::uint64_t least, std::uint64_t most) const {
    const bool valid = json_->is_number_unsigned();
    const std::uint64_t value = valid ? json_->get<std::uint64_t>() : 0;
    if (!valid || value < least || value > most) fail_expected(fmt::format("an integer of {} to {}", least, most));
    return value;
}

std::uint64_t JsonValue::integer(std::int64_t least, std::uint64_t most) const {
    const bool negative = is_integer() && !json_->is_number_unsigned();  // the parser calls all others unsigned
    const bool valid =
        is_integer() && (negative ? json_->get<std::int64_t>() >= least : json_->get<std::uint64_t>() <= most);
    if (!valid) fail_expected(fmt::format("an integer of {} to {}", least, most));
    return negative ? static_cast<std::uint64_t>(json_->get<std::int64_t>()) : json_->get<std::uint64_t>();
}

double JsonValue::number() const {
    if (!json_->is_number()) fail_expected("a number");
    return json_->get<double>();
}

std::vector<JsonValue> JsonValue::elements() const {
    if (!is_array()) fail_expected("a list");
    std::vector<JsonValue> values;
    for (const Json& element : *json_) values.push_back(child(element, fmt::format("[{}]", values.size())));
    return values;
}

std::size_t JsonValue::choice(std::span<const std::string> words) const {
    const std::string word = string();
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) fail(fmt::format("{} is unknown{}", shown(*json_), suggestion(word, words)));
    return static_cast<std::size_t>(found - words.begin());
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
    if (!is_object()) fail_expected("an object, {\"name\": value, ...}");
    std::vector<std::pair<std::string, JsonValue>> members;
    for (const auto& [name, value] : json_->items()) members.emplace_back(name, child(value, name));
    return members;
}

void JsonValue::allow(std::span<const std::string> names) const {
    for (const auto& [name, value] : members()) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        fail(fmt::format("the key {} is unknown{}", shown(name), suggestion(name, names)));
    }
}

std::optional<JsonValue> JsonValue::find(const std::string& name) const {
    const auto found = json_->find(name);
    if (found == json_->end()) return std::nullopt;
    return child(*found, name);
}

JsonValue JsonValue::at(const std::string& name) const {
    const auto found = find(name);
    if (!found) fail(fmt::format("the key \"{}\" is missing", name));
    return *found;
}

JsonValue JsonValue::child(const Json& json, std::string_view step) const {
    const bool dot = !path_.empty() && !step.starts_with('[');
    return {json, *file_, fmt::format("{}{}{}", path_, dot ? "." : "", step)};
}

JsonFile::JsonFile(const std::filesystem::path& path) : name_(path.string()) { parse(read_text_file(path)); }

JsonFile::JsonFile(std::string name, const std::string& text) : name_(std::move(name)) { parse(text); }

JsonFile::~JsonFile() = default;

void JsonFile::parse(const std::string& text) {
    try {
        json_ = std::make_unique<Json>(Json::parse(text, MemberNames{}));
    } catch (const Json::parse_error& error) {
        throw UsageError(fmt::format("{}: {}: {}", name_, line_and_column(text, error.byte), shortened(error.what())));
    } catch (const Json::exception& error) {
        throw UsageError(fmt::format("{}: {}", name_, shortened(error.what())));
    } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}: {}", name_, error.what()));
    }
}

}  // namespace block_attention
