#include "verify/ptx_command/content.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

#include "verify/io/temporary_folder.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using testing::TemporaryFolder;

ArraySpec parse(const std::string& text, const std::filesystem::path& folder = {}, const ArraySpec* like = nullptr) {
    const JsonFile file("f.json", text);
    return read_array(file.root(), folder, like);
}

std::string fault_of(const std::string& text, const std::filesystem::path& folder = {}) {
    try {
        parse(text, folder);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

/// The content as numbers.
std::vector<long double> content(const ArraySpec& array, std::uint64_t seed = 1, std::uint64_t stream = 0) {
    const std::vector<std::byte> bytes = make_content(array, seed, stream);
    std::vector<long double> values;
    for (std::size_t i = 0; i < bytes.size(); i += size_of(array.type)) {
        values.push_back(load_element(array.type, bytes.data() + i));
    }
    return values;
}

TEST_CASE("zeros, indices and values") {
    CHECK(content(parse(R"({"dtype": "f16", "shape": [2, 2], "content": "zeros"})")) ==
          std::vector<long double>{0, 0, 0, 0});
    CHECK(content(parse(R"({"dtype": "bf16", "shape": 3, "content": "indices"})")) ==
          std::vector<long double>{0, 1, 2});
    CHECK(content(parse(R"({"dtype": "u8", "shape": 258, "content": "indices"})")).back() == 1);
    const ArraySpec values = parse(R"({"dtype": "s64", "content": {"values": [1, -9223372036854775808, "0xff"]}})");
    CHECK(values.shape == std::vector<std::int64_t>{3});
    CHECK(content(values) == std::vector<long double>{1, -9223372036854775808.0L, 255});
    CHECK(std::isnan(content(parse(R"({"dtype": "f32", "content": {"values": ["nan"]}})"))[0]));
    CHECK(content(parse(R"({"dtype": "f16", "shape": [1, 3], "content": {"values": ["inf", "-inf", "0x3c00"]}})")) ==
          std::vector<long double>{INFINITY, -INFINITY, 1});
    CHECK(parse(R"({"dtype": "f32", "shape": []})").elements == 1);
    CHECK(parse(R"({"dtype": "f32", "shape": [4, 0]})").elements == 0);
    CHECK(parse(R"({"dtype": "f32", "shape": 4})").content.kind == Content::Kind::poison);
}

TEST_CASE("normal numbers have the mean and the deviation asked for") {
    const auto moments = [](const std::vector<long double>& values) {
        const auto count = static_cast<long double>(values.size());
        const long double mean = std::accumulate(values.begin(), values.end(), 0.0L) / count;
        long double squares = 0;
        for (const long double value : values) squares += (value - mean) * (value - mean);
        return std::pair(mean, std::sqrt(squares / count));
    };
    const auto [mean, deviation] = moments(content(parse(R"({"dtype": "f32", "shape": 100000, "content": "normal"})")));
    CHECK(std::abs(mean) < 0.02);
    CHECK(std::abs(deviation - 1) < 0.02);
    const auto [shifted, narrow] =
        moments(content(parse(R"({"dtype": "f64", "shape": 100000, "content": {"normal": [5, 0.25]}})")));
    CHECK(std::abs(shifted - 5) < 0.01);
    CHECK(std::abs(narrow - 0.25) < 0.01);
}

TEST_CASE("uniform numbers and integers fill their range") {
    const auto uniform = content(parse(R"({"dtype": "f32", "shape": 10000, "content": {"uniform": [-2, 6]}})"));
    const auto [least, most] = std::minmax_element(uniform.begin(), uniform.end());
    CHECK(*least >= -2);
    CHECK(*least < -1.9);
    CHECK(*most <= 6);
    CHECK(*most > 5.9);
    for (const char* type : {"s8", "s32", "s64", "f16", "bf16", "f64"}) {
        auto integers = content(
            parse(fmt::format(R"({{"dtype": "{}", "shape": 1000, "content": {{"integers": [-3, 3]}}}})", type)));
        std::sort(integers.begin(), integers.end());
        integers.erase(std::unique(integers.begin(), integers.end()), integers.end());
        CHECK(integers == std::vector<long double>{-3, -2, -1, 0, 1, 2, 3});
    }
    const auto wide = content(parse(
        R"({"dtype": "u64", "shape": 100, "content": {"integers": [18446744073709551614, 18446744073709551615]}})"));
    CHECK(*std::min_element(wide.begin(), wide.end()) == 18446744073709551614.0L);
    const auto all = content(parse(
        R"({"dtype": "s64", "shape": 100, "content": {"integers": [-9223372036854775808, 9223372036854775807]}})"));
    CHECK(std::count_if(all.begin(), all.end(), [](long double value) { return value < 0; }) > 20);
}

TEST_CASE("random content depends on the seed, the buffer and the index alone") {
    const ArraySpec array = parse(R"({"dtype": "f32", "shape": 70000, "content": "normal"})");
    CHECK(make_content(array, 1, 0) == make_content(array, 1, 0));
    CHECK(make_content(array, 1, 0) != make_content(array, 2, 0));
    CHECK(make_content(array, 1, 0) != make_content(array, 1, 1));
    // With a seed of its own neither the run's nor the buffer's number matters.
    const ArraySpec seeded = parse(R"({"dtype": "f32", "shape": 70000, "content": "normal", "seed": 1})");
    CHECK(make_content(seeded, 1, 0) == make_content(seeded, 2, 5));
    CHECK(make_content(seeded, 1, 0) != make_content(array, 1, 0));
    const ArraySpec shorter = parse(R"({"dtype": "f32", "shape": [10, 10], "content": "normal", "seed": 1})");
    const auto longer_bytes = make_content(seeded, 1, 0);
    const auto shorter_bytes = make_content(shorter, 1, 0);
    CHECK(std::equal(shorter_bytes.begin(), shorter_bytes.end(), longer_bytes.begin()));
}

TEST_CASE("a .npy file gives its type and shape, or must agree") {
    const TemporaryFolder folder;
    const std::vector<std::uint16_t> ones(6, 0x3F80);
    const auto write = [&](const char* name, ElementType type) {
        std::ofstream stream(folder / name, std::ios::binary);
        write_npy(stream, type, std::vector<std::int64_t>{2, 3}, std::as_bytes(std::span(ones)));
    };
    write("u16.npy", ElementType::u16);
    write("bf16.npy", ElementType::bf16);
    const ArraySpec plain = parse(R"({"content": {"npy": "u16.npy"}})", folder.path());
    CHECK(plain.type == ElementType::u16);
    CHECK(plain.shape == std::vector<std::int64_t>{2, 3});
    CHECK(content(plain)[0] == 0x3F80);
    for (const char* name : {"u16.npy", "bf16.npy"}) {
        const std::string text =
            fmt::format(R"({{"dtype": "bf16", "shape": [2, 3], "content": {{"npy": "{}"}}}})", name);
        CHECK(content(parse(text, folder.path())) == std::vector<long double>(6, 1));
    }
    CHECK(fault_of(R"({"dtype": "f16", "content": {"npy": "u16.npy"}})", folder.path()) ==
          "f.json: content.npy: the file holds u16, but the buffer is of f16");
    CHECK(fault_of(R"({"shape": [3, 2], "content": {"npy": "u16.npy"}})", folder.path()) ==
          "f.json: content.npy: the file holds u16[2, 3], but the buffer is u16[3, 2]");
    CHECK(fault_of(R"({"content": {"npy": "missing.npy"}})", folder.path())
              .ends_with("missing.npy: No such file or directory"));
    const ArraySpec like = parse(R"({"dtype": "bf16", "shape": [2, 3]})");
    CHECK(parse(R"({"content": {"npy": "u16.npy"}})", folder.path(), &like).type == ElementType::bf16);
    CHECK(parse(R"({"content": "zeros"})", {}, &like).shape == like.shape);
    CHECK(parse(R"({"content": {"values": [1, 2, 3, 4, 5, 6]}})", {}, &like).shape == like.shape);
}

TEST_CASE("faulty arrays are named with their place and the way out") {
    CHECK(fault_of(R"({"shape": 3})") == "f.json: the key \"dtype\" is missing");
    CHECK(fault_of(R"({"dtype": "f32"})") == "f.json: the key \"shape\" is missing");
    CHECK(fault_of(R"({"dtype": "fp16", "shape": 3})") == "f.json: dtype: \"fp16\" is unknown; did you mean f16?");
    CHECK(fault_of(R"({"dtype": "f32", "shape": -3})").starts_with("f.json: shape: -3 is not an integer of 0 to"));
    CHECK(fault_of(R"({"dtype": "f32", "shape": [1048576, 1048576, 1048576]})")
              .starts_with("f.json: f32[1048576, 1048576, 1048576] takes more than the"));
    CHECK(fault_of(R"({"dtype": "f32", "shape": [4294967296, 4294967296, 4294967296]})").find("takes more") !=
          std::string::npos);
    CHECK(fault_of(R"({"dtype": "f32", "shape": 3, "content": "zeroes"})") ==
          "f.json: content: \"zeroes\" is unknown; did you mean zeros?");
    CHECK(fault_of(R"({"dtype": "f32", "shape": 3, "content": {"value": [1]}})") ==
          "f.json: content: the key \"value\" is unknown; did you mean values?");
    CHECK(fault_of(R"({"dtype": "f32", "shape": 3, "content": {}})") == "f.json: content: 0 keys; a content has one");
    CHECK(fault_of(R"({"content": "zeros", "shape": 3})") ==
          "f.json: content: this content needs a \"dtype\" beside it");
    CHECK(fault_of(R"({"dtype": "s32", "shape": 3, "content": "normal"})") ==
          "f.json: content: normal numbers are no s32: take {\"integers\": [least, largest]}");
    CHECK(fault_of(R"({"dtype": "s32", "shape": 3, "content": {"uniform": [0, 1]}})") ==
          "f.json: content: uniform numbers are no s32: take {\"integers\": [least, largest]}");
    CHECK(fault_of(R"({"dtype": "s32", "shape": 3, "content": {"integers": [3]}})") ==
          "f.json: content.integers: a list of 1: integers take [least, largest]");
    CHECK(fault_of(R"({"dtype": "s32", "shape": 3, "content": {"integers": [3, -1]}})") ==
          "f.json: content.integers: the range descends; write the smaller integer first");
    CHECK(fault_of(R"({"dtype": "s32", "shape": 3, "content": {"integers": [-1, -3]}})") ==
          "f.json: content.integers: the range descends; write the smaller integer first");
    CHECK(fault_of(R"({"dtype": "u8", "shape": 3, "content": {"integers": [-1, 3]}})") ==
          "f.json: content.integers[0]: -1 is not an integer of 0 to 255");
    CHECK(fault_of(R"({"dtype": "f16", "shape": 3, "content": {"integers": [0, 2049]}})") ==
          "f.json: content.integers[1]: 2049 is not an integer of -2048 to 2048");
    CHECK(fault_of(R"({"dtype": "f16", "shape": 3, "content": {"values": [1, 2]}})") ==
          "f.json: content.values: 2 values, but the buffer is f16[3]");
    CHECK(fault_of(R"({"dtype": "s8", "content": {"values": [1, 128]}})") ==
          "f.json: content.values[1]: 128 is not an integer of -128 to 127");
    CHECK(fault_of(R"({"dtype": "s8", "content": {"values": ["nan"]}})") ==
          "f.json: content.values[0]: \"nan\" is not a s8: write a number, or the bits as \"0x...\"");
    CHECK(fault_of(R"({"dtype": "f16", "content": {"values": [70000]}})") ==
          "f.json: content.values[0]: 70000 is too large for a f16; write \"inf\" if that is meant");
    CHECK(fault_of(R"({"dtype": "f16", "content": {"values": ["0x12345"]}})") ==
          "f.json: content.values[0]: \"0x12345\" is not the bits of a f16: 0x and up to 4 hexadecimal digits");
    CHECK(fault_of(R"({"dtype": "f32", "shape": 3, "seed": -1})").starts_with("f.json: seed: -1 is not an integer"));
}

}  // namespace
}  // namespace block_attention
