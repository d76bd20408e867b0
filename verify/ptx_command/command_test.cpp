#include "verify/ptx_command/command.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "naive/naive.h"
#include "verify/ptx_command/test_launch.h"
#include "verify/simulator/layout/tensor_map.h"
#include "verify/simulator/programs/programs.h"

namespace block_attention {
namespace {

using testing::CommandOutcome;
using testing::contains;
using testing::copy_parameter_kernel;
using testing::kScaleKernel;
using testing::kTicketKernel;
using testing::LaunchFolder;
using testing::read_file;
using testing::values_of;

constexpr const char* kScaleSpec = R"({
  "grid": 3, "block": 128,
  "buffers": {"x": {"dtype": "f32", "shape": 300, "content": "indices"}, "y": {"dtype": "f32", "shape": 300}},
  "arguments": [{"buffer": "x"}, {"buffer": "y"}, {"f32": 2}, {"u32": 300}],
  "outputs": {"y": "y.npy"}
})";

TEST_CASE("a kernel runs, and its output is written") {
    LaunchFolder folder(kScaleKernel);
    const CommandOutcome outcome = folder.launch(kScaleSpec);
    CHECK(outcome.error.empty());
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out ==
          "verify 0.1.0, seed 1\n"
          "k.ptx: scale on the simulated sm_90a, a grid of 3x1x1 CTAs of 128x1x1 threads\n"
          "\n"
          "y: written to y.npy\n"
          "passed\n");
    const NpyArray y = folder.read("y.npy");
    CHECK(y.type == ElementType::f32);
    CHECK(y.shape == std::vector<std::int64_t>{300});
    std::vector<float> expected(300);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * static_cast<float>(i);
    CHECK(values_of<float>(y) == expected);
}

TEST_CASE("expectations are compared, from a file and from content") {
    LaunchFolder folder(kScaleKernel);
    std::vector<double> expected(300);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * static_cast<double>(i) + 0.25;
    folder.write("expected.npy", ElementType::f64, {300}, std::as_bytes(std::span(expected)));
    const auto launch = [&](const std::string& expectation) {
        std::string spec = kScaleSpec;
        return folder.launch(spec.replace(spec.find("\"outputs\""), 26, "\"expect\": {" + expectation + "}"));
    };
    const CommandOutcome near = launch(R"("y": {"content": {"npy": "expected.npy"}, "absolute": 0.25})");
    CHECK(near.exit_code == 0);
    CHECK(contains(near.out, "y: 0 of 300 elements differ, within 0.25; largest difference 0.25\npassed\n"));
    const CommandOutcome far = launch(R"("y": {"content": {"npy": "expected.npy"}, "absolute": 0.125})");
    CHECK(far.exit_code == 1);
    CHECK(contains(far.out, "y: 300 of 300 elements differ"));
    CHECK(contains(far.out, "  y[0]: computed 0 (0x00000000), expected 0.25 (0x3fd0000000000000)\n"));
    CHECK(contains(far.out, "FAILED: 300 wrong\n"));
    const CommandOutcome bits = launch(R"("x": {"content": "indices"}, "y": {"content": "indices"})");
    CHECK(bits.exit_code == 1);
    CHECK(contains(bits.out, "x: 0 of 300 elements differ, bit for bit\ny: 299 of 300 elements differ, bit for bit\n"));
}

TEST_CASE("a finding fails and is printed with its place") {
    LaunchFolder folder(kScaleKernel);
    std::string spec = kScaleSpec;
    spec.replace(spec.find("\"u32\": 300"), 10, "\"u32\": 301");
    const CommandOutcome outcome = folder.launch(spec);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.out, "k.ptx:23: error: out-of-bounds: "));
    CHECK(contains(outcome.out, "past the end of 'x' (1200 bytes at"));
    CHECK(contains(outcome.out, "(kernel scale, CTA 2,0,0, thread 44,0,0; 1 occurrence)\n"));
    CHECK(contains(outcome.out, "FAILED: 2 findings\n"));
}

TEST_CASE("poison is what was never written") {
    LaunchFolder folder(kScaleKernel);
    std::string spec = kScaleSpec;
    spec.replace(spec.find("\"indices\""), 9, "\"poison\"");
    const CommandOutcome outcome = folder.launch(spec);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.out, "error: uninitialized-read: "));
}

TEST_CASE("a kernel that dies fails, and what it left is not held against the expectations") {
    LaunchFolder folder(".visible .entry k(.param .u64 y) { trap; }\n");
    const CommandOutcome outcome = folder.launch(R"({"block": 32, "buffers": {"y": {"dtype": "u8", "shape": 4}},
        "arguments": [{"buffer": "y"}], "expect": {"y": {"content": "zeros"}}})");
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.out, "error: trap: "));
    CHECK(contains(outcome.out, "FAILED: the kernel died, 1 finding\n"));
    CHECK_FALSE(contains(outcome.out, "differ"));
}

constexpr const char* kTicketSpec = R"({
  "block": 256,
  "buffers": {"counter": {"dtype": "u32", "shape": 1, "content": "zeros"}, "out": {"dtype": "u32", "shape": 256}},
  "arguments": [{"buffer": "counter"}, {"buffer": "out"}],
  "outputs": {"out": "out.npy"}
})";

TEST_CASE("a result that depends on the schedule is reported with the first seed that shows it, which replays") {
    LaunchFolder folder(kTicketKernel);
    const CommandOutcome outcome = folder.launch(kTicketSpec, {.seed = 5, .schedules = 20});
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.out, "verify 0.1.0, seed 5, 20 schedules from seed 5\n"));
    CHECK(contains(outcome.out, "schedules: seed 6 of 5 to 24 stands out; --schedule-seed 6 replays it\n"));
    CHECK(contains(outcome.out, " bytes differ from seed 5's, first out["));
    CHECK(contains(outcome.out, "FAILED: the result depends on the schedule\n"));
    const auto first = values_of<std::uint32_t>(folder.read("out.npy"));

    CHECK(folder.launch(kTicketSpec, {.seed = 5}).exit_code == 0);
    CHECK(values_of<std::uint32_t>(folder.read("out.npy")) == first);
    CHECK(folder.launch(kTicketSpec, {.seed = 5, .schedule_seed = 6}).exit_code == 0);
    const auto other = values_of<std::uint32_t>(folder.read("out.npy"));
    CHECK(other != first);
    CHECK(std::is_permutation(other.begin(), other.end(), first.begin()));
    CHECK(folder.launch(kTicketSpec, {.seed = 17, .schedule_seed = 6}).exit_code == 0);
    CHECK(values_of<std::uint32_t>(folder.read("out.npy")) == other);
}

TEST_CASE("the order of CTAs is the seed's, and replays exactly though they communicate") {
    std::string spec = kTicketSpec;
    spec.replace(spec.find("\"block\": 256"), 12, "\"grid\": 256, \"block\": 1");
    LaunchFolder by_cta(std::string(kTicketKernel).replace(kTicketKernel.find("%tid.x"), 6, "%ctaid.x"));
    const auto order = [&](std::uint64_t seed) {
        CHECK(by_cta.launch(spec, {.schedule_seed = seed}).exit_code == 0);
        return values_of<std::uint32_t>(by_cta.read("out.npy"));
    };
    const auto third = order(3);
    CHECK(order(3) == third);
    const auto fourth = order(4);
    CHECK(fourth != third);
    CHECK(std::is_permutation(fourth.begin(), fourth.end(), third.begin()));
}

TEST_CASE("every schedule starts with fresh buffers and module variables") {
    // Each run adds to a variable of the module and to a buffer; both must be as at the start again.
    LaunchFolder folder(R"(
.global .u32 total = 40;
.visible .entry k(.param .u64 y)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [y];
    atom.global.add.u32 %r1, [total], 1;
    atom.global.add.u32 %r2, [%rd], %r1;
    ret;
}
)");
    const CommandOutcome outcome = folder.launch(
        R"({"block": 1, "buffers": {"y": {"dtype": "u32", "content": {"values": [2]}}}, "arguments": [{"buffer": "y"}],
            "expect": {"y": {"content": {"values": [42]}}}})",
        {.schedules = 50});
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "schedules: 50, one result\ny: 0 of 1 element differ, bit for bit\npassed\n"));
}

TEST_CASE("only buffers that are written or expected must not depend on the schedule") {
    LaunchFolder folder(kTicketKernel);
    std::string spec = kTicketSpec;
    spec.replace(spec.find("{\"out\": \"out.npy\"}"), 18, "{\"counter\": \"counter.npy\"}");
    CHECK(folder.launch(spec, {.schedules = 20}).exit_code == 0);
    CHECK(values_of<std::uint32_t>(folder.read("counter.npy")) == std::vector<std::uint32_t>{256});
    spec = kTicketSpec;
    spec.replace(spec.find(",\n  \"outputs\""), spec.size(), "}");
    CHECK(contains(folder.launch(spec, {.schedules = 20}).out, "depends on the schedule"));
}

TEST_CASE("a tensor map argument reaches the kernel as its 128 bytes, in a parameter and in a structure") {
    LaunchFolder folder(copy_parameter_kernel("map", 128, 64) + copy_parameter_kernel("structure", 272, 64));
    const std::string fields = R"({"tensor_map": {"buffer": "m", "box": [64, 8], "swizzle": "128B"}})";
    const auto launch = [&](const std::string& kernel, const std::string& argument, int elements) {
        const CommandOutcome outcome = folder.launch(fmt::format(
            R"({{"kernel": "{}", "block": 1,
                 "buffers": {{"m": {{"dtype": "bf16", "shape": [100, 64]}}, "out": {{"dtype": "u32", "shape": {}}}}},
                 "arguments": [{}, {{"buffer": "out"}}], "outputs": {{"out": "out.npy"}}}})",
            kernel, elements, argument));
        CHECK(outcome.error.empty());
        CHECK(outcome.exit_code == 0);
        return folder.read("out.npy").bytes;
    };
    const auto decode = [](std::span<const std::byte> bytes) {
        return std::get<simulator::TensorMap>(simulator::decode_tensor_map(bytes.first<simulator::kTensorMapBytes>()));
    };
    const std::vector<std::byte> alone = launch("map", fields, 32);
    const simulator::TensorMap map = decode(alone);
    CHECK(map.dims[1] == 100);
    CHECK(map.swizzle == simulator::SwizzleMode::b128);
    CHECK(map.address != 0);
    CHECK(map.address % 256 == 0);
    const std::vector<std::byte> whole =
        launch("structure", fmt::format(R"({{"struct": [{{"u32": 7}}, {}]}})", fields), 68);
    CHECK(whole[0] == std::byte{7});
    CHECK(decode(std::span(whole).subspan(128)) == map);
    CHECK(std::all_of(whole.begin() + 256, whole.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_CASE("the naive kernel's PTX runs from a spec") {
    // One tile of 4 tokens, 1 head of dim 8, one thread a row; V is 1 everywhere, so O is 1.
    const Plan plan = [] {
        Problem problem;
        problem.sequences = 1;
        problem.tokens = 4;
        problem.heads = 1;
        problem.head_dim = 8;
        problem.block_size = 4;
        return std::get<Plan>(naive_stage().plan(problem));
    }();
    const Launch& launch = plan.launches.front();
    LaunchFolder folder("");
    testing::write_file(folder / "k.ptx", std::string(launch.module->ptx));
    // Strides of q, k, v, o: sequence, head, token, dim; then head dim and scale.
    const std::string strides =
        R"({"s64": [32, 8, 8, 1]}, {"s64": [32, 8, 8, 1]}, {"s64": [32, 8, 8, 1]}, {"s64": [32, 8, 8, 1]})";
    const CommandOutcome outcome = folder.launch(fmt::format(
        R"({{"kernel": "{}", "block": 32,
             "buffers": {{"q": {{"dtype": "f16", "shape": [4, 8], "content": "normal"}},
                          "k": {{"dtype": "f16", "shape": [4, 8], "content": "normal"}},
                          "v": {{"dtype": "f16", "shape": [4, 8], "content": {{"integers": [1, 1]}}}},
                          "o": {{"dtype": "f16", "shape": [4, 8]}},
                          "tiles": {{"dtype": "s64", "content": {{"values": [0, 4]}}}}}},
             "arguments": [{{"buffer": "q"}}, {{"buffer": "k"}}, {{"buffer": "v"}}, {{"buffer": "o"}},
                           {{"buffer": "tiles"}}, {{"struct": [{}, {{"s32": 8}}, {{"f32": 0.5}}]}}],
             "expect": {{"o": {{"content": {{"integers": [1, 1]}}, "seed": 0, "relative": 0.001}}}}}})",
        launch.kernel, strides));
    CHECK(outcome.error.empty());
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "o: 0 of 32 elements differ"));
}

TEST_CASE("a Hopper GEMM in clusters runs from a spec: tensor maps, a structure, dynamic shared memory") {
    LaunchFolder folder("");
    testing::write_file(folder / "k.ptx", std::string(programs::program_named("hopper_gemm_cluster").module().ptx));
    // The structure: matrix descriptors of the 128B swizzle, the bytes of a stage, parities.
    const CommandOutcome outcome = folder.launch(R"({
      "grid": [2, 1], "block": 288, "cluster": 2, "dynamic_shared_bytes": 197632,
      "buffers": {"a": {"dtype": "bf16", "shape": [256, 320], "content": {"integers": [1, 1]}},
                  "b": {"dtype": "bf16", "shape": [320, 128], "content": {"integers": [-2, -2]}},
                  "c": {"dtype": "f32", "shape": [256, 128]}},
      "arguments": [{"tensor_map": {"buffer": "a", "box": [64, 128], "swizzle": "128B"}},
                    {"tensor_map": {"buffer": "b", "box": [64, 64], "swizzle": "128B"}},
                    {"tensor_map": {"buffer": "c", "box": [32, 64], "swizzle": "128B"}},
                    {"struct": [{"b64": ["0x4000004000010000", "0x4000004002000000"]}, {"u32": [0, 32768, 0, 1, 0, 1]}]},
                    {"u32": 5}],
      "expect": {"c": {"content": {"integers": [-640, -640]}, "seed": 1}}})",
                                                 {.schedules = 2});
    CHECK(outcome.error.empty());
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out,
                   "a grid of 2x1x1 CTAs of 288x1x1 threads in clusters of 2x1x1, 197,632 bytes of dynamic "
                   "shared memory\n"));
    CHECK(contains(outcome.out, "c: 0 of 32,768 elements differ, bit for bit\n"));
}

TEST_CASE("an opcode or a modifier that is unknown is named with its place, and nothing runs") {
    const auto launch = [](const std::string& instruction) {
        LaunchFolder folder(".visible .entry k()\n{\n    .reg .b32 %r<3>;\n    " + instruction + "\n    ret;\n}\n");
        const CommandOutcome outcome = folder.launch(R"({"block": 1})");
        CHECK(outcome.exit_code == 2);
        CHECK(outcome.out.empty());
        return outcome.error;
    };
    CHECK(launch("frobnicate.u32 %r1, %r2;") ==
          "k.ptx:7:5: frobnicate.u32: opcode 'frobnicate' is not simulated (in kernel 'k')");
    CHECK(launch("add.sideways.u32 %r1, %r2, %r2;").starts_with("k.ptx:7:5: add.sideways.u32: "));
    CHECK(contains(launch("add.sideways.u32 %r1, %r2, %r2;"), "sideways"));
    CHECK(launch("add.u32 %r1, %missing, %r2;").starts_with("k.ptx:7:"));
    CHECK(contains(launch("add.u32 %r1, %missing, %r2;"), "%missing"));
    CHECK(launch(".texref t;").starts_with("k.ptx:7:5: "));
}

TEST_CASE("the simulator's own refusals are usage errors too") {
    LaunchFolder folder(kScaleKernel);
    std::string spec = kScaleSpec;
    spec.replace(spec.find("\"block\": 128"), 12, "\"block\": 512");
    const CommandOutcome block = folder.launch(spec);
    CHECK(block.exit_code == 2);
    CHECK(contains(block.error, "a block of 512 threads, but the kernel is compiled for at most 256 (.maxntid)"));
    const CommandOutcome architecture = folder.launch(kScaleSpec, {.architecture = "sm_100a"});
    CHECK(architecture.exit_code == 2);
    CHECK(contains(architecture.error, "the module's target is sm_90a, which the simulated sm_100a does not run"));
}

TEST_CASE("wrong paths are refused before anything runs, and leave nothing behind") {
    LaunchFolder folder(kScaleKernel);
    std::string spec = kScaleSpec;
    spec.replace(spec.find("y.npy"), 5, "missing/y.npy");
    const CommandOutcome output = folder.launch(spec);
    CHECK(output.exit_code == 2);
    CHECK(output.out.empty());
    CHECK(contains(output.error, "cannot write missing/y.npy: No such file or directory"));
    CHECK(contains(folder.launch(kScaleSpec, {.json = "/missing/r.json"}).error, "cannot write /missing/r.json"));
    CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
    CHECK(contains(folder.run({.launch = "/missing/spec.json"}).error, "/missing/spec.json: No such file"));
    CHECK(folder.run({}).error == "verify ptx FILE takes one of --list and --launch SPEC.json");
    CHECK(folder.run({.launch = "x", .list = true}).error ==
          "verify ptx FILE takes one of --list and --launch SPEC.json");
    std::filesystem::remove(folder / "k.ptx");
    CHECK(folder.list().error == "k.ptx: No such file or directory");
}

TEST_CASE("the report in JSON holds what is printed") {
    LaunchFolder folder(kTicketKernel);
    const std::string path = folder / "r.json";
    folder.launch(kTicketSpec, {.seed = 5, .schedules = 20, .json = path});
    const nlohmann::json report = nlohmann::json::parse(read_file(path));
    CHECK(report["format"] == 1);
    CHECK(report["passed"] == false);
    CHECK(report["kernel"] == "ticket");
    CHECK(report["target"] == "sm_90a");
    CHECK(report["block"] == nlohmann::json{256, 1, 1});
    CHECK(report["seed"] == 5);
    CHECK(report["schedules"]["first_seed"] == 5);
    CHECK(report["schedules"]["count"] == 20);
    CHECK(report["schedules"]["runs"] == 2);
    CHECK(report["schedules"]["seed_that_stands_out"] == 6);
    CHECK(report["schedules"]["difference"]["buffer"] == "out");
    CHECK(report["findings"].empty());
    CHECK(report["statistics"]["ctas"] == 1);

    LaunchFolder dies(".visible .entry k() { trap; }\n");
    const std::string dead_path = dies / "r.json";
    dies.launch(R"({"block": 32})", {.json = dead_path});
    const nlohmann::json dead = nlohmann::json::parse(read_file(dead_path));
    CHECK(dead["died"] == true);
    CHECK(dead["findings"][0]["rule"] == "trap");
    CHECK(dead["findings"][0]["line"] == 4);
}

}  // namespace
}  // namespace block_attention
