#include "verify/io/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <sstream>

#include "verify/io/temporary_folder.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

/// A file with that header and that many bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes) {
    const std::uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file + header + std::string(data_bytes, '\1');
}

/// The message on opening such a file, without its path.
std::string error_of(const std::string& content) {
    const TemporaryFolder folder;
    write_file(folder / "x", content);
    try {
        const SafetensorsFile file(folder / "x");
    } catch (const UsageError& error) {
        const std::string prefix = (folder / "x").string() + ": ";
        REQUIRE(std::string(error.what()).find(prefix) == 0);
        return std::string(error.what()).substr(prefix.size());
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

TEST_CASE("what is written is read back") {
    const TemporaryFolder folder;
    const std::vector<NamedTensor> tensors{{"a", "F32", {2, 3}, bytes_of<float>({1, 2, 3, 4, 5, 6})},
                                           {"empty", "F16", {0, 3}, {}},
                                           {"n", "I64", {2}, bytes_of<std::int64_t>({-5, 1LL << 40})},
                                           {"i", "I32", {1}, bytes_of<std::int32_t>({-7})},
                                           {"x", "F64", {}, bytes_of<double>({0.1})},
                                           {"y", "BF16", {1}, bytes_of<std::uint16_t>({0x3F80})}};
    std::ostringstream stream;
    write_safetensors(stream, tensors, {{"made by", "a test"}});
    write_file(folder / "f", stream.str());
    SafetensorsFile file(folder / "f");
    CHECK(file.at("a").dtype == "F32");
    CHECK(file.at("a").shape == std::vector<std::int64_t>{2, 3});
    std::vector<float> a(6);
    file.read(file.at("a"), std::as_writable_bytes(std::span(a)));
    CHECK(a == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(file.at("empty").elements() == 0);
    CHECK(file.read_integers("n") == std::vector<std::int64_t>{-5, 1LL << 40});
    CHECK(file.read_integers("i") == std::vector<std::int64_t>{-7});
    CHECK(file.read_number("x") == 0.1);
    CHECK(file.read_number("y") == 1);
    CHECK(file.metadata().at("made by") == "a test");
    CHECK(file.find("b") == nullptr);
    CHECK_THROWS_WITH_AS((void)file.at("b"), doctest::Contains("there is no tensor b; it holds a, empty, i, n, x, y"),
                         UsageError);
    CHECK_THROWS_WITH_AS(file.read_integers("a"), doctest::Contains("the tensor a is F32; integers are I32 or I64"),
                         UsageError);
    CHECK_THROWS_WITH_AS(file.read_number("a"), doctest::Contains("has the shape [2, 3]; it must hold one number"),
                         UsageError);
    CHECK_THROWS_WITH_AS(file.read_number("i"), doctest::Contains("the tensor i is I32; a number is"), UsageError);
}

TEST_CASE("the header is padded so that the data is aligned") {
    std::ostringstream stream;
    write_safetensors(stream, {}, {});
    CHECK(stream.str() == file_with("{}      ", 0));
    CHECK(error_of(stream.str()).empty());
}

TEST_CASE("a file that is missing or a folder is refused") {
    const TemporaryFolder folder;
    CHECK_THROWS_WITH_AS(SafetensorsFile(folder / "none"), doctest::Contains("No such file"), UsageError);
    CHECK_THROWS_WITH_AS(SafetensorsFile(folder.path()), doctest::Contains("it is a directory"), UsageError);
}

TEST_CASE("a truncated file is refused") {
    const std::string whole = file_with(R"({"q":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4);
    CHECK(error_of(whole).empty());
    CHECK(contains(error_of(""), "it has 0 bytes"));
    CHECK(contains(error_of(whole.substr(0, 7)), "it has 7 bytes"));
    CHECK(contains(error_of(whole.substr(0, 20)),
                   "it is truncated: its header should end at byte 62, the file ends at 20"));
    CHECK(contains(error_of(whole.substr(0, whole.size() - 1)),
                   "the tensor q lies at bytes 0 to 4, but the file holds 3 bytes of data; it may be truncated"));
}

TEST_CASE("a header that is too long or not JSON is refused") {
    CHECK(contains(error_of(std::string(8, '\xFF') + "{}"), "its header would be 18446744073709551615 bytes long"));
    CHECK(contains(error_of(file_with("{", 0)), "the header is not JSON"));
    CHECK(contains(error_of(file_with("[1]", 0)), "the header is not a JSON object"));
    CHECK(contains(error_of(file_with(R"({"q":1})", 0)), "the header's entry for the tensor q needs a dtype"));
    CHECK(contains(error_of(file_with(R"({"q":{"dtype":"F16","shape":[2]}})", 0)), "needs a dtype"));
    CHECK(contains(error_of(file_with(R"({"q":{"dtype":5,"shape":[2],"data_offsets":[0,4]}})", 4)), "needs a dtype"));
    CHECK(contains(error_of(file_with(R"({"__metadata__":3})", 0)), "__metadata__ is not an object"));
    CHECK(contains(error_of(file_with(R"({"__metadata__":{"a":3}})", 0)), "__metadata__ entry a is not a text"));
    CHECK(contains(
        error_of(file_with(
            R"({"q":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"q":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
            1)),
        "the header names the tensor q twice"));
}

TEST_CASE("sizes and offsets that do not fit are refused") {
    const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
        return R"({"q":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
    };
    CHECK(contains(error_of(file_with(entry("F16", "[2]", "[0,6]"), 6)),
                   "the tensor q of F16 [2] does not fill bytes 0 to 6"));
    CHECK(contains(error_of(file_with(entry("F16", "[2]", "[4,0]"), 4)), "lies at bytes 4 to 0"));
    CHECK(
        contains(error_of(file_with(entry("F16", "[-1]", "[0,4]"), 4)), "the shape entry -1, which is not an integer"));
    CHECK(contains(error_of(file_with(entry("F16", "[1.5]", "[0,4]"), 4)),
                   "the shape entry 1.5, which is not an integer"));
    CHECK(contains(error_of(file_with(entry("F16", "[9223372036854775807,3]", "[0,4]"), 4)), "does not fill"));
    CHECK(contains(error_of(file_with(entry("F16", "[18446744073709551615]", "[0,4]"), 4)),
                   "is not an integer of 0 to 2^63 - 1"));
    CHECK(contains(error_of(file_with(entry("F4", "[2]", "[0,1]"), 1)), "the tensor q has the unknown dtype F4"));
}

TEST_CASE("tensors that overlap or leave a hole are refused") {
    const auto two = [](const std::string& first, const std::string& second) {
        return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
               R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
    };
    CHECK(error_of(file_with(two("[4,8]", "[0,4]"), 8)).empty());
    CHECK(contains(error_of(file_with(two("[0,4]", "[3,7]"), 7)), "the tensors a and b overlap at byte 3"));
    CHECK(contains(error_of(file_with(two("[0,4]", "[5,9]"), 9)), "bytes 4 to 5 of the data belong to no tensor"));
    CHECK(contains(error_of(file_with(two("[0,4]", "[4,8]"), 9)), "bytes 8 to 9 of the data belong to no tensor"));
}

}  // namespace
}  // namespace block_attention
