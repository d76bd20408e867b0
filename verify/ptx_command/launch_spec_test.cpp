#include "verify/ptx_command/launch_spec.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "verify/ptx_command/test_launch.h"
#include "verify/simulator/ptx/parse.h"

namespace block_attention {
namespace {

using testing::contains;
using testing::kPtxHeader;
using testing::kScaleKernel;
using testing::TemporaryFolder;
using testing::write_file;

/// A module of that text, and specs for it.
class Specs {
  public:
    explicit Specs(std::string_view kernels)
        : module_(simulator::ptx::parse(fmt::format("{}{}", kPtxHeader, kernels), "k.ptx")) {}

    LaunchSpec read(const std::string& text, const std::optional<std::string>& architecture = std::nullopt) {
        write_file(folder_ / "spec.json", text);
        return read_launch_spec(folder_ / "spec.json", module_, architecture);
    }
    /// What reading it complains of, without the path.
    std::string fault_of(const std::string& text, const std::optional<std::string>& architecture = std::nullopt) {
        try {
            read(text, architecture);
        } catch (const UsageError& error) {
            const std::string message = error.what();
            const std::string prefix = (folder_ / "spec.json").string() + ": ";
            return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
        }
        return "";
    }
    /// The bytes of the only argument of a kernel with one parameter, where buffer i lies at 0x1000 * (i + 1).
    std::vector<std::byte> argument(const std::string& text, const std::string& buffers = "{}") {
        const LaunchSpec spec = read(fmt::format(R"({{"block": 1, "buffers": {}, "arguments": [{}]}})", buffers, text));
        std::vector<std::uint64_t> addresses;
        for (std::size_t i = 0; i < spec.buffers.size(); ++i) addresses.push_back(0x1000 * (i + 1));
        std::vector<std::byte> bytes(spec.kernel->parameters[0].bytes);
        encode(spec.arguments.at(0), addresses, bytes);
        return bytes;
    }
    std::string fault_of_argument(const std::string& text, const std::string& buffers = "{}") {
        return fault_of(fmt::format(R"({{"block": 1, "buffers": {}, "arguments": [{}]}})", buffers, text));
    }

  private:
    simulator::ptx::Module module_;
    TemporaryFolder folder_;
};

std::string one_parameter(unsigned bytes) {
    return fmt::format(".visible .entry k(.param .align 8 .b8 p[{}]) {{ ret; }}\n", bytes);
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

constexpr const char* kScaleArguments =
    R"("buffers": {"x": {"dtype": "f32", "shape": 4}, "y": {"dtype": "f32", "shape": 4}},
       "arguments": [{"buffer": "x"}, {"buffer": "y"}, {"f32": 2}, {"u32": 4}])";

TEST_CASE("a spec is read; what it leaves out follows from the kernel and the file") {
    Specs specs(kScaleKernel);
    const LaunchSpec spec = specs.read(fmt::format(R"({{"block": [4, 2], "grid": 7, {}}})", kScaleArguments));
    CHECK(spec.kernel->name == "scale");
    CHECK(spec.grid == Dim3{7, 1, 1});
    CHECK(spec.block == Dim3{4, 2, 1});
    CHECK(spec.cluster == Dim3{1, 1, 1});
    CHECK(to_string(spec.target) == "sm_90a");
    CHECK(spec.buffers.size() == 2);
    CHECK(spec.arguments.size() == 4);

    Specs fixed(".visible .entry k() .reqntid 64, 2 .reqnctapercluster 2, 1, 1 { ret; }\n");
    CHECK(fixed.read("{}").block == Dim3{64, 2, 1});
    CHECK(fixed.read("{}").cluster == Dim3{2, 1, 1});
    CHECK(fixed.read("{}").grid == Dim3{1, 1, 1});
    CHECK(fixed.read(R"({"dynamic_shared_bytes": 1000, "cluster": [1]})").dynamic_shared_bytes == 1000);
}

TEST_CASE("the target is the option's, else the spec's, else the file's") {
    Specs specs(".visible .entry k() { ret; }\n");
    CHECK(to_string(specs.read(R"({"block": 1})").target) == "sm_90a");
    CHECK(to_string(specs.read(R"({"block": 1, "target": "sm_100a"})").target) == "sm_100a");
    CHECK(to_string(specs.read(R"({"block": 1, "target": "sm_100a"})", "sm_120").target) == "sm_120");
    CHECK(specs.fault_of(R"({"block": 1, "target": "sm_70"})") ==
          "target: \"sm_70\" cannot be simulated; take sm_90a, sm_100a, or another sm_75 or later");
    CHECK(specs.fault_of(R"({"block": 1})", "hopper") ==
          "--arch: \"hopper\" cannot be simulated; take sm_90a, sm_100a, or another sm_75 or later");
    CHECK(to_string(simulated_target(*parse_target("sm_100f"))) == "sm_100a");
    CHECK(to_string(simulated_target(*parse_target("sm_52"))) == "sm_75");
    for (const char* name : {"", "sm_", "sm_90b", "sm_9x", "sm_1000000", "compute_90", "sm_-5"}) {
        CHECK_FALSE(parse_target(name));
    }
}

TEST_CASE("unknown keys come with a suggestion, faulty extents with their range") {
    Specs specs(".visible .entry k() { ret; }\n");
    CHECK(specs.fault_of(R"({"block": 1, "gird": 1})") == "the key \"gird\" is unknown; did you mean grid?");
    CHECK(specs.fault_of(R"({})") == "the key \"block\" is missing, and the kernel \"k\" doesn't fix it (.reqntid)");
    CHECK(specs.fault_of(R"({"block": 0})") == "block: 0 is not an integer of 1 to 4294967295");
    CHECK(specs.fault_of(R"({"block": [1, 1, 1, 1]})") == "block: 4 extents; there are one to three");
    CHECK(specs.fault_of(R"({"block": []})") == "block: 0 extents; there are one to three");
    CHECK(contains(specs.fault_of("[]"), "is not an object"));
    CHECK(contains(specs.fault_of("{\n\"block\": 1,\n}"), "line 3, column 1: "));
}

TEST_CASE("a missing kernel is named beside those that are there") {
    Specs two(".visible .entry first() { ret; }\n.visible .entry second() { ret; }\n.func helper() { ret; }\n");
    CHECK(two.read(R"({"kernel": "second", "block": 1})").kernel->name == "second");
    CHECK(two.fault_of(R"({"block": 1})") == "the key \"kernel\" is missing, and k.ptx has 2 kernels: first, second");
    CHECK(two.fault_of(R"({"kernel": "third", "block": 1})") ==
          "kernel: k.ptx has no kernel \"third\"; it has first, second");
    CHECK(two.fault_of(R"({"kernel": "helper", "block": 1})") ==
          "kernel: k.ptx has no kernel \"helper\"; it has first, second");
    CHECK(Specs(".func helper() { ret; }\n").fault_of(R"({"block": 1})") == "k.ptx has no kernel (.entry with a body)");
    std::string many;
    for (int i = 0; i < 25; ++i) many += fmt::format(".visible .entry k{}() {{ ret; }}\n", i);
    CHECK(contains(Specs(many).fault_of(R"({"block": 1})"), "k18, k19 and 5 more (see --list)"));
}

TEST_CASE("the number of arguments and the size of each must be the kernel's") {
    Specs specs(kScaleKernel);
    CHECK(specs.fault_of(R"({"block": 1, "arguments": [{"u64": 1}]})") ==
          "1 arguments, but the kernel \"scale\" has 4 parameters: x (8 bytes), y (8 bytes), factor (4 bytes), n (4 "
          "bytes)");
    CHECK(contains(specs.fault_of(R"({"block": 1})"), "0 arguments, but"));
    CHECK(specs.fault_of(R"({"block": 1, "arguments": [{"u64": 1}, {"u64": 1}, {"f64": 1}, {"u32": 1}]})") ==
          "arguments[2]: a f64 of 8 bytes, but the parameter \"factor\" has 4");
    CHECK(specs.fault_of(R"({"block": 1, "arguments": [{"u64": 1}, {"u32": 1}, {"f32": 1}, {"u32": 1}]})") ==
          "arguments[1]: a u32 of 4 bytes, but the parameter \"y\" has 8");
    CHECK(specs.fault_of(R"({"block": 1, "arguments": [{"bytes": "00"}, {"u64": 1}, {"f32": 1}, {"u32": 1}]})") ==
          "arguments[0]: bytes of 1 bytes, but the parameter \"x\" has 8");
    CHECK(
        specs.fault_of(
            R"({"block": 1, "arguments": [{"struct": [{"u64": 1}, {"u8": 1}]}, {"u64": 1}, {"f32": 1}, {"u32": 1}]})") ==
        "arguments[0]: a structure of 9 bytes, but the parameter \"x\" has 8");
    CHECK(Specs(".visible .entry k() { ret; }\n").fault_of(R"({"block": 1, "arguments": [{"u8": 1}]})") ==
          "1 arguments, but the kernel \"k\" has 0 parameters");
}

TEST_CASE("scalars of every type, and lists of them") {
    Specs four(one_parameter(4));
    CHECK(four.argument(R"({"u32": 4294967295})") == bytes_of({255, 255, 255, 255}));
    CHECK(four.argument(R"({"s32": -2})") == bytes_of({254, 255, 255, 255}));
    CHECK(four.argument(R"({"f32": 1.5})") == bytes_of({0, 0, 0xC0, 0x3F}));
    CHECK(four.argument(R"({"f32": "0x7fffffff"})") == bytes_of({255, 255, 255, 127}));
    CHECK(four.argument(R"({"b32": "0x01020304"})") == bytes_of({4, 3, 2, 1}));
    CHECK(four.argument(R"({"f16": [1, -2]})") == bytes_of({0, 0x3C, 0, 0xC0}));
    CHECK(four.argument(R"({"bf16": [1, "inf"]})") == bytes_of({0x80, 0x3F, 0x80, 0x7F}));
    CHECK(four.argument(R"({"u8": [1, 2, 3, 4]})") == bytes_of({1, 2, 3, 4}));
    CHECK(four.argument(R"({"bytes": "01 02_0A ff"})") == bytes_of({1, 2, 10, 255}));
    CHECK(Specs(one_parameter(8)).argument(R"({"s64": -1})") == std::vector<std::byte>(8, std::byte{255}));
    CHECK(Specs(one_parameter(8)).argument(R"({"f64": 1})") == bytes_of({0, 0, 0, 0, 0, 0, 0xF0, 0x3F}));
    CHECK(four.fault_of_argument(R"({"u32": -1})") == "arguments[0].u32: -1 is not an integer of 0 to 4294967295");
    CHECK(four.fault_of_argument(R"({"u32": 1.5})") == "arguments[0].u32: 1.5 is not an integer of 0 to 4294967295");
    CHECK(four.fault_of_argument(R"({"s32": 2147483648})") ==
          "arguments[0].s32: 2147483648 is not an integer of -2147483648 to 2147483647");
    CHECK(four.fault_of_argument(R"({"bytes": "0102030"})") ==
          "arguments[0].bytes: an odd number of hexadecimal digits; a byte has two");
    CHECK(four.fault_of_argument(R"({"bytes": "xy"})") == "arguments[0].bytes: 'x' is no hexadecimal digit");
    CHECK(contains(four.fault_of_argument(R"({"i32": 1})"), "arguments[0]: the key \"i32\" is unknown; did you mean"));
    CHECK(contains(four.fault_of_argument(R"({})"), "arguments[0]: no value; an argument is one of"));
    CHECK(contains(four.fault_of_argument(R"({"u32": 1, "s32": 1})"), "arguments[0]: the keys u32, s32; an argument"));
    CHECK(
        contains(four.fault_of_argument(R"({"u32": 1, "offset": 1})"), "arguments[0]: \"offset\" is for a \"buffer\""));
    CHECK(contains(four.fault_of_argument(R"({"u32": 1, "at": 1})"), "arguments[0]: \"at\" is for the fields"));
}

TEST_CASE("pointers are a buffer's address and an offset of either sign") {
    constexpr const char* kBuffers = R"({"x": {"dtype": "u8", "shape": 1}, "y": {"dtype": "u8", "shape": 1}})";
    Specs specs(one_parameter(8));
    CHECK(specs.argument(R"({"buffer": "y", "offset": 16})", kBuffers) == bytes_of({16, 0x20, 0, 0, 0, 0, 0, 0}));
    CHECK(specs.argument(R"({"buffer": "x", "offset": -1})", kBuffers) == bytes_of({255, 15, 0, 0, 0, 0, 0, 0}));
    CHECK(specs.fault_of_argument(R"({"buffer": "z"})", kBuffers) ==
          "arguments[0].buffer: there is no buffer \"z\"; did you mean x or y?");
    CHECK(specs.fault_of_argument(R"({"buffer": "z"})") ==
          "arguments[0].buffer: there is no buffer \"z\": \"buffers\" names none");
}

TEST_CASE("structures are packed with natural alignment, or as \"at\" says, and padded with zeros") {
    Specs specs(one_parameter(24));
    CHECK(specs.argument(R"({"struct": [{"u8": 1}, {"u32": 2}, {"u16": 3}, {"u64": 4}]})") ==
          bytes_of({1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
    CHECK(specs.argument(R"({"struct": [{"u8": 1, "at": 23}, {"u32": 2, "at": 1}, {"u8": 9}]})") ==
          bytes_of({0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
    // A structure in a structure takes its own alignment, and its padding counts.
    CHECK(specs.argument(R"({"struct": [{"u8": 1}, {"struct": [{"u32": 2}, {"u8": 3}]}, {"u8": [4, 5]}]})") ==
          bytes_of({1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    CHECK(specs.argument(R"({"struct": [{"u8": 1}, {"buffer": "x", "offset": 2}]})",
                         R"({"x": {"dtype": "u8", "shape": 1}})") ==
          bytes_of({1, 0, 0, 0, 0, 0, 0, 0, 2, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    CHECK(specs.argument(R"({"struct": []})") == std::vector<std::byte>(24));
    CHECK(specs.fault_of_argument(R"({"struct": [{"u32": 1}, {"u32": 1, "at": 2}]})") ==
          "arguments[0].struct[1]: bytes 2 to 5 overlap an earlier field, bytes 0 to 3");
    CHECK(specs.fault_of_argument(R"({"struct": [{"u32": 1, "at": 24}]})") ==
          "arguments[0]: a structure of 28 bytes, but the parameter \"p\" has 24");
    CHECK(contains(specs.fault_of_argument(R"({"struct": [{"u32": 1, "at": 32764}]})"),
                   "arguments[0].struct: more than 32764 bytes"));
    std::string nested = R"({"u8": 1})";
    for (int i = 0; i < 20; ++i) nested = fmt::format(R"({{"struct": [{}]}})", nested);
    CHECK(contains(specs.fault_of_argument(nested), "structures nest at most 16 deep"));
}

constexpr const char* kMatrix = R"({"m": {"dtype": "bf16", "shape": [100, 64]}, "s": {"dtype": "s8", "shape": 32}})";

TEST_CASE("a tensor map's fields default to the buffer's") {
    Specs specs(one_parameter(128));
    const auto decoded = [&](const std::string& fields) {
        const auto bytes = specs.argument(fmt::format(R"({{"tensor_map": {}}})", fields), kMatrix);
        std::array<std::byte, simulator::kTensorMapBytes> map{};
        std::copy(bytes.begin(), bytes.end(), map.begin());
        return std::get<simulator::TensorMap>(simulator::decode_tensor_map(map));
    };
    simulator::TensorMap expected;
    expected.type = simulator::TensorMapType::bfloat16;
    expected.rank = 2;
    expected.address = 0x1000;
    expected.dims = {64, 100, 1, 1, 1};
    expected.byte_strides = {128, 0, 0, 0};
    expected.box = {64, 8, 1, 1, 1};
    CHECK(decoded(R"({"buffer": "m", "box": [64, 8]})") == expected);

    expected.type = simulator::TensorMapType::uint8;
    expected.rank = 3;
    expected.address = 0x1020;
    expected.dims = {32, 10, 4, 1, 1};
    expected.byte_strides = {64, 1024, 0, 0};
    expected.box = {16, 2, 4, 1, 1};
    expected.element_strides = {1, 2, 1, 1, 1};
    expected.swizzle = simulator::SwizzleMode::b32;
    expected.l2_promotion = simulator::TensorMapL2Promotion::b128;
    CHECK(decoded(R"({"buffer": "m", "offset": 32, "type": "uint8", "dims": [32, 10, 4], "strides": [64, 1024],
                      "box": [16, 2, 4], "element_strides": [1, 2, 1], "swizzle": "32B", "l2_promotion": "128B",
                      "interleave": "none", "fill": "zero"})") == expected);
    const auto packed = decoded(R"({"buffer": "m", "dims": [64, 10, 10], "box": [64, 1, 1], "fill": "nan"})");
    CHECK(packed.byte_strides == std::array<std::uint64_t, 4>{128, 1280, 0, 0});
    CHECK(packed.fill == simulator::TensorMapFill::nan);
}

TEST_CASE("a tensor map that the driver would refuse is refused, with the field's key") {
    Specs specs(one_parameter(128));
    const auto fault = [&](const std::string& fields) {
        return specs.fault_of_argument(fmt::format(R"({{"tensor_map": {}}})", fields), kMatrix);
    };
    constexpr const char* kPlace = "arguments[0].tensor_map: ";
    const auto is_refused = [&](const std::string& fields, std::string_view key) {
        return fault(fmt::format(R"({{"buffer": "m", {}}})", fields))
            .starts_with(fmt::format("{}\"{}\" is refused: ", kPlace, key));
    };
    CHECK(fault(R"({"buffer": "m"})") == fmt::format("{}the key \"box\" is missing", kPlace));
    CHECK(fault(R"({"box": [64, 8]})") == fmt::format("{}the key \"buffer\" is missing", kPlace));
    CHECK(fault(R"({"buffer": "n", "box": [64, 8]})") ==
          "arguments[0].tensor_map.buffer: there is no buffer \"n\"; did you mean m or s?");
    CHECK(contains(fault(R"({"buffer": "m", "boxs": [64, 8]})"), "\"boxs\" is unknown; did you mean box?"));
    CHECK(fault(R"({"buffer": "m", "box": [64]})") ==
          "arguments[0].tensor_map.box: 1 entries; there must be 2, one for each of dims");
    CHECK(fault(R"({"buffer": "m", "box": [64, 8], "strides": [128, 128]})") ==
          "arguments[0].tensor_map.strides: 2 entries; there must be 1, one in bytes for each of dims but the first");
    CHECK(fault(R"({"buffer": "m", "box": [], "dims": [1, 1, 1, 1, 1, 1]})") ==
          fmt::format("{}dims has 6 entries; a tensor map has 1 to 5", kPlace));
    CHECK(contains(fault(R"({"buffer": "m", "box": [64, 8], "swizzle": "128"})"),
                   "arguments[0].tensor_map.swizzle: \"128\" is unknown; did you mean 128B"));
    CHECK(contains(fault(R"({"buffer": "s", "box": [32]})"), "no type for a buffer of s8; say \"type\": \"uint8\""));
    CHECK(is_refused(R"("box": [3, 8])", "box"));
    CHECK(is_refused(R"("box": [64, 8], "strides": [100])", "strides"));
    CHECK(is_refused(R"("box": [64, 8], "dims": [0, 8])", "dims"));
    CHECK(is_refused(R"("box": [64, 8], "offset": 8)", "offset"));
    CHECK(is_refused(R"("box": [64, 8], "element_strides": [1, 9])", "element_strides"));
    CHECK(is_refused(R"("box": [64, 8], "swizzle": "128B_ATOM_32B")", "swizzle"));
    CHECK(is_refused(R"("box": [64, 8], "type": "16u4_align8b")", "type"));
    CHECK_FALSE(fault(R"({"buffer": "m", "box": [64, 8], "interleave": "16B"})").empty());
}

TEST_CASE("outputs and expectations name buffers that exist") {
    Specs specs(kScaleKernel);
    const auto fault = [&](const std::string& more) {
        return specs.fault_of(fmt::format(R"({{"block": 4, {}, {}}})", kScaleArguments, more));
    };
    CHECK(fault(R"("outputs": {"y": "y.npy"})").empty());
    CHECK(fault(R"("outputs": {"z": "y.npy"})") == "outputs: there is no buffer \"z\"; did you mean x or y?");
    CHECK(fault(R"("outputs": {"y": 5})") == "outputs.y: 5 is not a text");
    CHECK(fault(R"("expect": {"z": {"content": "zeros"}})") ==
          "expect: there is no buffer \"z\"; did you mean x or y?");
}

}  // namespace
}  // namespace block_attention
