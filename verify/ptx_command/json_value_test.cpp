#include "verify/ptx_command/json_value.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <limits>

#include "verify/usage_error.h"

namespace block_attention {
namespace {

std::string fault_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

std::string fault_of_text(const std::string& text) {
    return fault_of([&] { const JsonFile file("f.json", text); });
}

TEST_CASE("malformed JSON is named with line and column") {
    CHECK(fault_of_text("{}").empty());
    CHECK(fault_of_text("{\n  \"grid\": 4,\n  \"block\" 128\n}")
              .starts_with("f.json: line 3, column 13: syntax error while parsing object separator"));
    CHECK(fault_of_text("").starts_with("f.json: line 1, column 1: "));
    CHECK(fault_of_text("{\"a\": [1, 2,]}").starts_with("f.json: line 1, column 13: "));
    CHECK(fault_of_text("{} {}").starts_with("f.json: line 1, column 4: "));
    CHECK(fault_of_text("{\"a\": 1e999}").starts_with("f.json: number overflow"));
    CHECK(fault_of_text("{\"a\": \"\xff\"}").starts_with("f.json: line 1, column 8: "));
}

TEST_CASE("a member that is named twice is an error, at every depth") {
    CHECK(fault_of_text(R"({"a": 1, "b": 2, "a": 3})") == R"(f.json: an object names "a" twice)");
    CHECK(fault_of_text(R"({"l": [{"a": 1}, {"a": 1, "a": 1}]})") == R"(f.json: an object names "a" twice)");
    CHECK(fault_of_text(R"({"a": {"a": 1}, "b": {"a": 1}})").empty());
}

TEST_CASE("values are read, and complaints name their place") {
    const JsonFile file("f.json", R"({"n": [5, -3, 1.5, 18446744073709551615], "t": "text", "o": {"k": true}})");
    const JsonValue root = file.root();
    const std::vector<JsonValue> n = root.at("n").elements();
    CHECK(n[0].unsigned_integer(0, 5) == 5);
    CHECK(n[1].integer(-3, 0) == static_cast<std::uint64_t>(-3));
    CHECK(n[2].number() == 1.5);
    CHECK(n[3].integer(0, std::numeric_limits<std::uint64_t>::max()) == std::numeric_limits<std::uint64_t>::max());
    CHECK(root.at("t").string() == "text");
    CHECK(root.members().size() == 3);
    CHECK_FALSE(root.find("x"));

    CHECK(fault_of([&] { (void)n[0].unsigned_integer(0, 4); }) == "f.json: n[0]: 5 is not an integer of 0 to 4");
    CHECK(fault_of([&] { (void)n[1].unsigned_integer(0, 4); }) == "f.json: n[1]: -3 is not an integer of 0 to 4");
    CHECK(fault_of([&] { (void)n[1].integer(-2, 4); }) == "f.json: n[1]: -3 is not an integer of -2 to 4");
    CHECK(fault_of([&] { (void)n[2].integer(-2, 4); }) == "f.json: n[2]: 1.5 is not an integer of -2 to 4");
    CHECK(fault_of([&] { (void)root.at("o").at("k").number(); }) == "f.json: o.k: true is not a number");
    CHECK(fault_of([&] { (void)root.at("o").at("k").string(); }) == "f.json: o.k: true is not a text");
    CHECK(fault_of([&] { (void)root.at("t").elements(); }) == "f.json: t: \"text\" is not a list");
    CHECK(fault_of([&] { (void)root.at("t").members(); }).starts_with("f.json: t: \"text\" is not an object"));
    CHECK(fault_of([&] { (void)root.at("x"); }) == "f.json: the key \"x\" is missing");
    CHECK(fault_of([&] { (void)root.at("o").at("x"); }) == "f.json: o: the key \"x\" is missing");
}

TEST_CASE("unknown keys and words come with a suggestion") {
    const JsonFile file("f.json", R"({"gird": 4, "word": "nrmal"})");
    const std::array<std::string, 3> keys{"grid", "block", "word"};
    CHECK(fault_of([&] { file.root().allow(keys); }) == R"(f.json: the key "gird" is unknown; did you mean grid?)");
    const std::array<std::string, 2> words{"normal", "zeros"};
    CHECK(fault_of([&] { (void)file.root().at("word").choice(words); }) ==
          R"(f.json: word: "nrmal" is unknown; did you mean normal?)");
}

TEST_CASE("a missing file is named") {
    CHECK(fault_of([] { const JsonFile file(std::filesystem::path("/missing/spec.json")); }) ==
          "/missing/spec.json: No such file or directory");
}

}  // namespace
}  // namespace block_attention
