#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace block_attention {

/// A value of a JSON file and its place there, which every complaint names: "launch.json: arguments[2].box: ...". All
/// complaints are UsageErrors. Refers to the file's content, which must outlive it.
class JsonValue {
  public:
    JsonValue(const nlohmann::ordered_json& json, const std::string& file, std::string path)
        : json_(&json), file_(&file), path_(std::move(path)) {}

    [[noreturn]] void fail(std::string_view message) const;

    [[nodiscard]] bool is_string() const;
    [[nodiscard]] bool is_array() const;
    [[nodiscard]] bool is_object() const;
    [[nodiscard]] bool is_integer() const;
    [[nodiscard]] bool is_negative() const;

    /// These fail if the value is of another type or, with what is allowed, out of range.
    [[nodiscard]] std::string string() const;
    [[nodiscard]] std::uint64_t unsigned_integer(std::uint64_t least, std::uint64_t most) const;
    /// An integer of the range as 64 bits of two's complement; `least` is negative or 0.
    [[nodiscard]] std::uint64_t integer(std::int64_t least, std::uint64_t most) const;
    [[nodiscard]] double number() const;
    [[nodiscard]] std::vector<JsonValue> elements() const;
    /// One of a few words; a word nearby is suggested.
    [[nodiscard]] std::size_t choice(std::span<const std::string> words) const;

    /// The members of an object, in the file's order.
    [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> members() const;
    /// Fails if the object has a member of any other name.
    void allow(std::span<const std::string> names) const;
    [[nodiscard]] std::optional<JsonValue> find(const std::string& name) const;
    [[nodiscard]] JsonValue at(const std::string& name) const;

    /// "launch.json: arguments[2].box".
    [[nodiscard]] std::string place() const;

  private:
    [[nodiscard]] JsonValue child(const nlohmann::ordered_json& json, std::string_view step) const;
    [[noreturn]] void fail_expected(std::string_view what) const;

    const nlohmann::ordered_json* json_;
    const std::string* file_;
    std::string path_;
};

/// A JSON file in memory.
class JsonFile {
  public:
    /// Throws UsageError with line and column where the text is no JSON, and for an object that names a member twice.
    explicit JsonFile(const std::filesystem::path& path);
    /// The same of a text; `name` stands for the path in messages.
    JsonFile(std::string name, const std::string& text);
    JsonFile(const JsonFile&) = delete;
    JsonFile& operator=(const JsonFile&) = delete;
    ~JsonFile();

    [[nodiscard]] JsonValue root() const { return {*json_, name_, ""}; }

  private:
    void parse(const std::string& text);

    std::string name_;
    std::unique_ptr<nlohmann::ordered_json> json_;
};

}  // namespace block_attention
