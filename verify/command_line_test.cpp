#include "verify/command_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "verify/fake_device.h"
#include "verify/io/safetensors.h"
#include "verify/io/temporary_folder.h"

namespace block_attention {
namespace {

using testing::fake_stage;
using testing::FakeDevice;
using testing::read_file;
using testing::TemporaryFolder;

struct Outcome {
    int exit_code = 0;
    std::string out;
    std::string err;
};

/// The host and a fake device named "simulator", as far as the names ask for them.
DeviceSet fake_devices(const DeviceRequest& request, const FakeDevice::Kernel& kernel) {
    DeviceSet set;
    const auto asked = [&](const std::string& name) {
        return request.names.empty() ||
               std::find(request.names.begin(), request.names.end(), name) != request.names.end();
    };
    const auto add = [&](const std::string& name, std::unique_ptr<Device> device, bool is_host) {
        if (!asked(name)) return;
        set.devices.push_back({.name = name, .device = device.get(), .is_host = is_host});
        set.owned.push_back(std::move(device));
    };
    add("host", std::make_unique<HostDevice>(), true);
    add("simulator", std::make_unique<FakeDevice>(kernel), false);
    set.notes.emplace_back("no CUDA GPU");
    return set;
}

Outcome run(std::vector<const char*> arguments, const FakeDevice::Kernel& kernel = run_oracle, bool colour = false) {
    arguments.insert(arguments.begin(), "verify");
    std::ostringstream out;
    std::ostringstream err;
    const std::array stages{&oracle_stage(), &fake_stage()};
    const int code =
        run_command_line(static_cast<int>(arguments.size()), arguments.data(),
                         {.out = out,
                          .err = err,
                          .out_is_coloured = colour,
                          .stages = stages,
                          .open_devices = [&](const DeviceRequest& request) { return fake_devices(request, kernel); }});
    return {code, out.str(), err.str()};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr const char* kCase = "name=small,heads=2,tokens=20,dim=8,block=8";

TEST_CASE("a run in which everything passes ends with 0 and prints a table") {
    const Outcome outcome = run({"--case", kCase});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out == "verify " + std::string(kVersion) +
                             ", seed 1\n"
                             "simulator: host\n"
                             "no CUDA GPU\n"
                             "\n"
                             "case   stage   device          elements   of bound  result\n"
                             "small  oracle  host                 320     0.00 %  passed\n"
                             "small  fake    simulator            320     0.00 %  passed\n"
                             "\n"
                             "2 results: 2 passed\n");
}

TEST_CASE("the same seed prints the same") {
    const std::vector<const char*> arguments{"--case", "lengths=1..40x5,dim=8", "--seed", "5", "--verbose"};
    CHECK(run(arguments).out == run(arguments).out);
    CHECK(run({"--case", "lengths=1..40x5,dim=8", "--seed", "6", "--verbose"}).out != run(arguments).out);
}

TEST_CASE("a wrong element, an unwritten one, a stray write, a changed input, a NaN: each ends with 1 and is named") {
    const auto run_with = [](const FakeDevice::Kernel& fault) {
        return run({"--case", kCase}, [&](const Problem& problem) {
            run_oracle(problem);
            fault(problem);
        });
    };
    const auto byte = [](void* pointer, std::ptrdiff_t offset) -> unsigned char& {
        return *(static_cast<unsigned char*>(pointer) + offset);
    };
    const Outcome wrong = run_with([](const Problem& p) { store_element(p.dtype, p.o.at(0, 1, 9, 2), 3); });
    CHECK(wrong.exit_code == 1);
    CHECK(contains(wrong.out, "FAILED: 1 wrong"));
    CHECK(contains(wrong.out, "sequence 0, rows 8 to 15, head 1"));
    CHECK(contains(wrong.out, "row 9, dim 2: computed 3,"));
    CHECK(contains(wrong.out, "2 results: 1 passed, 1 failed"));

    const Outcome unwritten = run_with([&](const Problem& p) {
        byte(p.o.at(0, 1, 9, 2), 0) = 0xFF;
        byte(p.o.at(0, 1, 9, 2), 1) = 0xFF;
    });
    CHECK(unwritten.exit_code == 1);
    CHECK(
        contains(unwritten.out, "1 of 320 elements of o were never written, first sequence 0, head 1, token 9, dim 2"));

    const Outcome stray = run_with([&](const Problem& p) { byte(p.o.data, -2) = 0; });
    CHECK(stray.exit_code == 1);
    CHECK(contains(stray.out, "the guard zone of o was written, first 2 bytes before the first element of o"));

    const Outcome changed = run_with([&](const Problem& p) { byte(p.q.data, 1) ^= 1; });
    CHECK(changed.exit_code == 1);
    CHECK(contains(changed.out, "the input q was changed, first at sequence 0, head 0, token 0, dim 0"));

    const Outcome nan = run_with([](const Problem& p) { store_element(p.dtype, p.o.data, std::nan("")); });
    CHECK(nan.exit_code == 1);
    CHECK(contains(nan.out, "infinite"));

    const Outcome died = run({"--case", kCase}, [](const Problem&) { throw DeviceError("the kernel fake died"); });
    CHECK(died.exit_code == 1);
    CHECK(contains(died.out, "the kernel fake died"));
}

TEST_CASE("bad usage ends with 2 and says what is wrong") {
    const auto error = [](std::vector<const char*> arguments) {
        const Outcome outcome = run(std::move(arguments));
        CHECK(outcome.exit_code == 2);
        return outcome.err;
    };
    CHECK(error({"--case", "listin"}) == "verify: there is no case listin; did you mean listing?\n");
    CHECK(contains(error({"--case", "heads=x"}), "heads=x is not an integer"));
    CHECK(error({"--stage", "fak"}) == "verify: there is no stage fak; did you mean fake?\n");
    CHECK(contains(error({"--colour"}), "--colour"));
    CHECK(contains(error({"--seed", "one"}), "one"));
    CHECK(contains(error({"--arch", "sm_60"}), "sm_60"));
    CHECK(contains(error({"--case"}), "--case"));
    CHECK(contains(error({"--case", kCase, "--stage", "oracle", "--device", "simulator"}),
                   "nothing to run: the stage oracle runs on the host only, but the devices are simulator"));
    CHECK(contains(
        error({"--case", "tokens=8,dim=8,block=2048", "--stage", "fake"}),
        "nothing ran: the stage fake does not serve the case tokens=8,dim=8,block=2048: a block of more than"));
    CHECK(contains(error({"--block", "3"}), "--block is for --input"));
    CHECK(contains(error({"--input", "x", "--block", "0"}), "--block 0 is not a block size"));
    CHECK(contains(error({"--input", "x", "--case", kCase}), "--input and --case exclude each other"));
    CHECK(contains(error({"--input", "missing.safetensors"}), "missing.safetensors: No such file"));
    CHECK(contains(error({"--case", "listing*", "--output", "x"}),
                   "--output writes the results of one problem, but 2 cases"));
    CHECK(contains(error({"--case", kCase, "--json", "/missing/folder/x"}), "cannot write /missing/folder/x"));
    CHECK(contains(error({"--case", "batch=1000000,tokens=100000"}), "more than the"));
}

TEST_CASE("data and schedules have seeds of their own") {
    std::vector<std::uint64_t> seeds;
    const auto run_with = [&](std::vector<const char*> arguments) {
        arguments.insert(arguments.begin(), {"verify", "--case", kCase, "--device", "simulator"});
        std::ostringstream out;
        std::ostringstream err;
        const std::array stages{&fake_stage()};
        const auto open = [&](const DeviceRequest& request) {
            seeds.push_back(request.seed);
            return fake_devices(request, run_oracle);
        };
        run_command_line(static_cast<int>(arguments.size()), arguments.data(),
                         {.out = out, .err = err, .stages = stages, .open_devices = open});
        return out.str().substr(0, out.str().find('\n'));
    };
    const std::string version = std::string("verify ") + kVersion;
    CHECK(run_with({"--seed", "5"}) == version + ", seed 5");
    CHECK(run_with({"--seed", "5", "--schedule-seed", "7"}) == version + ", seed 5, 1 schedule from seed 7");
    CHECK(run_with({"--schedules", "20"}) == version + ", seed 1, 20 schedules from seed 1");
    CHECK(seeds == std::vector<std::uint64_t>{5, 7, 1});
    CHECK(contains(run({"--schedules", "0"}).err, "--schedules"));
    CHECK(run({"--schedules", "0"}).exit_code == 2);
}

TEST_CASE("ptx is a command of its own") {
    const TemporaryFolder folder;
    const std::string ptx = folder / "k.ptx";
    testing::write_file(ptx, ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n");
    const Outcome listed = run({"ptx", ptx.c_str(), "--list"});
    CHECK(listed.exit_code == 0);
    CHECK(contains(listed.out, "PTX 9.0 for sm_90a, 1 kernel\n\nk\n"));

    const std::string spec = folder / "spec.json";
    const std::string report = folder / "report.json";
    testing::write_file(spec, R"({"block": 32})");
    const std::vector<const char*> launch{"ptx",    ptx.c_str(),       "--launch", spec.c_str(),  "--schedules",
                                          "3",      "--schedule-seed", "8",        "--seed",      "4",
                                          "--arch", "sm_90a",          "--json",   report.c_str()};
    const Outcome launched = run(launch, run_oracle, true);
    CHECK(launched.exit_code == 0);
    CHECK(contains(launched.out, "seed 4, 3 schedules from seed 8\n"));
    CHECK(contains(launched.out, "\033[32mpassed"));
    CHECK(nlohmann::json::parse(read_file(report))["schedules"]["first_seed"] == 8);

    testing::write_file(spec, "{");
    const Outcome malformed = run({"ptx", ptx.c_str(), "--launch", spec.c_str()});
    CHECK(malformed.exit_code == 2);
    CHECK(contains(malformed.err, "verify: " + spec + ": line 1, column 2: "));
    CHECK(malformed.out.empty());

    CHECK(run({"ptx"}).exit_code == 2);
    CHECK(run({"ptx", ptx.c_str(), "--case", "listing"}).exit_code == 2);
    const Outcome misplaced = run({"--seed", "3", "ptx", ptx.c_str(), "--list"});
    CHECK(misplaced.exit_code == 2);
    CHECK(contains(misplaced.err, "--seed"));
    CHECK(contains(run({"ptx", "--help"}).out, "--launch"));
    CHECK(contains(run({"--help"}).out, "ptx"));
}

TEST_CASE("a refused case beside a served one is no failure, and --verbose says why") {
    const Outcome outcome = run({"--case", kCase, "--case", "name=wide,tokens=8,dim=8,block=2048", "--verbose"});
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "wide   fake    simulator              -          -  not served\n"));
    CHECK(contains(outcome.out, "wide: fake: not served: a block of more than 1024 tokens"));
    CHECK(contains(outcome.out, "4 results: 3 passed, 1 not served"));
}

TEST_CASE("help and version end with 0") {
    const Outcome help = run({"--help"});
    CHECK(help.exit_code == 0);
    for (const char* option : {"--case", "--stage", "--device", "--seed", "--list", "--json", "--junit", "--input",
                               "--output", "--block", "--arch", "Examples:", "Exit code:"}) {
        CHECK(contains(help.out, option));
    }
    CHECK(contains(run({"--version"}).out, kVersion));
}

TEST_CASE("--list names cases, stages with refusals, devices, layouts and fills, and runs nothing") {
    const Outcome outcome = run({"--list", "--case", "listing", "--case", "name=wide,tokens=8,dim=8,block=2048"},
                                [](const Problem&) { FAIL("ran"); });
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "  listing  fp16, 1 sequence of 256 tokens, 2 heads, dim 128, block 64\n"));
    CHECK(contains(outcome.out, "does not serve wide: a block of more than 1024 tokens"));
    CHECK(contains(outcome.out, "  simulator  host\n"));
    CHECK(contains(outcome.out, "no CUDA GPU\n"));
    CHECK(contains(outcome.out, "packed-qkv"));
    CHECK(contains(outcome.out, "extreme-logits"));
}

TEST_CASE("colour is written only where it is wanted") {
    CHECK_FALSE(contains(run({"--case", kCase}).out, "\033"));
    CHECK(contains(run({"--case", kCase}, run_oracle, true).out, "\033[32mpassed"));
}

TEST_CASE("reports are written, also of a failed run") {
    const TemporaryFolder folder;
    const std::string json = folder / "r.json";
    const std::string junit = folder / "r.xml";
    const Outcome outcome =
        run({"--case", kCase, "--json", json.c_str(), "--junit", junit.c_str()}, [](const Problem&) {});
    CHECK(outcome.exit_code == 1);
    const nlohmann::json report = nlohmann::json::parse(read_file(json));
    CHECK(report["passed"] == false);
    CHECK(report["results"][0]["outcome"] == "passed");
    CHECK(report["results"][1]["outcome"] == "failed");
    CHECK(report["results"][1]["shares"].size() == 6);
    CHECK(report["devices"][0]["name"] == "host");
    CHECK(contains(read_file(junit), "failures=\"1\""));
}

TEST_CASE("bad usage is found before anything runs") {
    CHECK(run({"--input", "missing.safetensors"}).out.empty());
    CHECK(run({"--case", kCase, "--case", "batch=1000000,tokens=100000"}).out.empty());
}

TEST_CASE("bad usage leaves no report behind") {
    const TemporaryFolder folder;
    const std::string json = folder / "r.json";
    CHECK(run({"--case", "tokens=8,dim=8,block=2048", "--stage", "nothing", "--json", json.c_str()}).exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(json));
}

TEST_CASE("an input goes through every stage, and the output holds a tensor for each") {
    const TemporaryFolder folder;
    const std::string input = folder / "in.safetensors";
    const std::string output = folder / "out.safetensors";
    const std::vector<std::uint16_t> ones(std::size_t{6} * 2 * 4, 0x3C00);
    const auto bytes = std::as_bytes(std::span(ones));
    const std::vector<std::int64_t> offsets{0, 2, 6};
    const auto offset_bytes = std::as_bytes(std::span(offsets));
    std::vector<NamedTensor> tensors;
    for (const char* name : {"q", "k", "v"}) tensors.push_back({name, "F16", {6, 2, 4}, {bytes.begin(), bytes.end()}});
    tensors.push_back({"offsets", "I64", {3}, {offset_bytes.begin(), offset_bytes.end()}});
    std::ofstream stream(input, std::ios::binary);
    write_safetensors(stream, tensors, {});
    stream.close();

    const Outcome outcome = run({"--input", input.c_str(), "--block", "2", "--output", output.c_str()});
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "in.safetensors  oracle  host"));
    SafetensorsFile written(output);
    for (const char* name : {"o.oracle.host", "o.fake.simulator"}) {
        const SafetensorsEntry& entry = written.at(name);
        CHECK(entry.dtype == "F16");
        CHECK(entry.shape == std::vector<std::int64_t>{6, 2, 4});
        std::vector<std::uint16_t> values(ones.size());
        written.read(entry, std::as_writable_bytes(std::span(values)));
        CHECK(values == ones);
    }
    CHECK(contains(run({"--list", "--input", input.c_str()}).err, "--list"));
}

}  // namespace
}  // namespace block_attention
