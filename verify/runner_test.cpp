#include "verify/runner.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "verify/cases/case_spec.h"
#include "verify/cases/load.h"
#include "verify/fake_device.h"
#include "verify/report/table.h"

namespace block_attention {
namespace {

using testing::fake_stage;
using testing::FakeDevice;

constexpr const char* kSpec = "heads=2,tokens=40,dim=8,block=16,layout=padded";

std::vector<Result> run(const Tensors& tensors, const Stage& stage, const std::vector<NamedDevice>& devices) {
    std::vector<Result> results;
    RunHooks hooks;
    hooks.after = [&](Result result) { results.push_back(std::move(result)); };
    const std::array stages{&stage};
    run_case({.name = "test", .tensors = &tensors}, stages, devices, hooks);
    return results;
}

/// The fake stage's result where the oracle has solved the problem and `fault` has then had its way with the tensors.
Result run_with(const FakeDevice::Kernel& fault, std::string_view spec = kSpec) {
    const Tensors tensors = load_case(parse_case(spec, 1), 1);
    FakeDevice device([&](const Problem& problem) {
        run_oracle(problem);
        fault(problem);
    });
    auto results = run(tensors, fake_stage(), {{.name = "fake", .device = &device}});
    REQUIRE(results.size() == 1);
    return results.front();
}

void set_byte(void* pointer, std::ptrdiff_t offset, unsigned char value) {
    *(static_cast<unsigned char*>(pointer) + offset) = value;
}

TEST_CASE("a correct stage passes, in every layout") {
    for (const LayoutFacts& facts : layouts()) {
        CAPTURE(facts.name);
        const std::string sizes = facts.layout == Layout::thd ? "lengths=3+0+7,trailing=2" : "batch=2,tokens=7";
        const Result result =
            run_with([](const Problem&) {}, sizes + ",heads=2,dim=8,block=4,layout=" + std::string(facts.name));
        CHECK(result.passed());
        CHECK_FALSE(failed(result));
        CHECK(result.comparison.elements > 0);
    }
}

TEST_CASE("a problem without a tile passes") {
    CHECK(run_with([](const Problem&) {}, "batch=0").passed());
    CHECK(run_with([](const Problem&) {}, "tokens=0").passed());
    CHECK(run_with([](const Problem&) {}, "lengths=0x3,trailing=2").passed());
}

TEST_CASE("a write before or behind the output fails") {
    for (const std::ptrdiff_t offset : {-1, -4096}) {
        const Result result = run_with([&](const Problem& problem) { set_byte(problem.o.data, offset, 0); });
        CHECK(failed(result));
        REQUIRE(result.faults.size() == 1);
        CHECK(result.faults[0].rule == "guard-zone");
        CHECK(result.comparison.passed());
    }
    const Result behind =
        run_with([](const Problem& problem) { set_byte(problem.o.data, byte_span(problem, Operand::o).value(), 0); });
    CHECK(failed(behind));
    CHECK(behind.faults.at(0).rule == "guard-zone");
}

TEST_CASE("a write into the padding of the output fails") {
    const Result result = run_with([](const Problem& problem) { set_byte(problem.o.at(0, 0, 0, 7), 2, 0); });
    CHECK(failed(result));
    CHECK(result.faults.at(0).rule == "gap");
}

TEST_CASE("a write around an input fails") {
    const Result result = run_with([](const Problem& problem) { set_byte(problem.k.data, -1, 0); });
    CHECK(failed(result));
    CHECK(result.faults.at(0).rule == "guard-zone");
    CHECK(result.faults.at(0).operand == Operand::k);
}

TEST_CASE("a changed input fails") {
    const Result result = run_with([](const Problem& problem) { set_byte(problem.v.at(0, 1, 2, 3), 0, 0x5A); });
    CHECK(failed(result));
    CHECK(result.faults.at(0).rule == "input-changed");
    CHECK(result.faults.at(0).operand == Operand::v);
}

TEST_CASE("an unwritten element fails") {
    const Result result = run_with([](const Problem& problem) {
        set_byte(problem.o.at(0, 1, 39, 7), 0, 0xFF);
        set_byte(problem.o.at(0, 1, 39, 7), 1, 0xFF);
    });
    CHECK(failed(result));
    CHECK(result.faults.at(0).rule == "unwritten");
    CHECK(result.comparison.wrong == 1);  // the poison is a NaN
}

TEST_CASE("a kernel that does nothing fails at every element, whatever ran before") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice works;
    FakeDevice idles([](const Problem&) {});
    const auto results =
        run(tensors, fake_stage(), {{.name = "works", .device = &works}, {.name = "idles", .device = &idles}});
    REQUIRE(results.size() == 2);
    CHECK(results[0].passed());
    CHECK(failed(results[1]));
    CHECK(results[1].comparison.wrong == 640);
    CHECK(results[1].faults.at(0).occurrences == 640);
    CHECK(results[1].bits->differing == 640);
}

TEST_CASE("a NaN and an infinity fail") {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        const Result result =
            run_with([&](const Problem& problem) { store_element(problem.dtype, problem.o.at(0, 0, 3, 3), value); });
        CHECK(failed(result));
        CHECK(result.comparison.wrong == 1);
        CHECK(result.faults.empty());
    }
}

TEST_CASE("one wrong element fails and is named") {
    const Result result =
        run_with([](const Problem& problem) { store_element(problem.dtype, problem.o.at(0, 1, 17, 3), 5); });
    CHECK(failed(result));
    CHECK(result.comparison.wrong == 1);
    const TileComparison& worst = result.comparison.tiles.front();
    CHECK(worst.tile.first_row == 16);
    CHECK(worst.head == 1);
    CHECK(worst.worst.row == 1);
    CHECK(worst.worst.dim == 3);
    CHECK(worst.worst.computed == 5);
}

TEST_CASE("a finding fails, though the result is right") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice device;
    device.findings.resize(1);
    device.findings[0].rule = "out-of-bounds";
    const auto results = run(tensors, fake_stage(), {{.name = "fake", .device = &device}});
    CHECK(results.at(0).comparison.passed());
    CHECK(failed(results.at(0)));
}

TEST_CASE("a launch that dies fails, with what the device found") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice device([](const Problem&) { throw DeviceError("the kernel fake died"); });
    device.findings.resize(1);
    const auto results = run(tensors, fake_stage(), {{.name = "fake", .device = &device}});
    CHECK(failed(results.at(0)));
    CHECK(results.at(0).error == "the kernel fake died");
    CHECK(results.at(0).findings.size() == 1);
}

TEST_CASE("devices must agree in every bit") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice first;
    FakeDevice same;
    FakeDevice other([](const Problem& problem) {
        run_oracle(problem);
        auto* element = static_cast<unsigned char*>(problem.o.at(0, 1, 2, 3));
        element[0] ^= 1U;
    });
    const auto results =
        run(tensors, fake_stage(),
            {{.name = "a", .device = &first}, {.name = "b", .device = &same}, {.name = "c", .device = &other}});
    REQUIRE(results.size() == 3);
    CHECK_FALSE(results[0].bits);
    CHECK(results[1].bits->device == "a");
    CHECK(results[1].bits->elements == 640);
    CHECK(results[1].bits->differing == 0);
    CHECK(results[1].passed());
    CHECK(results[2].bits->differing == 1);
    CHECK(results[2].bits->first.find("o at sequence 0, head 1, token 2, dim 3: 0x") == 0);
    CHECK(failed(results[2]));
}

TEST_CASE("a device that died is no reference for the others' bits") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice dies([](const Problem&) { throw DeviceError("gone"); });
    FakeDevice second;
    FakeDevice third;
    const auto results =
        run(tensors, fake_stage(),
            {{.name = "a", .device = &dies}, {.name = "b", .device = &second}, {.name = "c", .device = &third}});
    CHECK_FALSE(results[1].bits);
    CHECK(results[2].bits->device == "b");
}

TEST_CASE("the oracle runs on the host only, is judged by the witness, and works on a copy of the tensors") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    HostDevice host;
    FakeDevice fake;
    const std::vector<NamedDevice> devices{{.name = "host", .device = &host, .is_host = true},
                                           {.name = "fake", .device = &fake}};
    const auto results = run(tensors, oracle_stage(), devices);
    REQUIRE(results.size() == 1);
    CHECK(results[0].device == "host");
    CHECK(results[0].passed());

    static Stage vandal = oracle_stage();
    vandal.run_on_host = [](const Problem& problem) {
        run_oracle(problem);
        store_element(problem.dtype, problem.q.at(0, 0, 0, 0), 77);
    };
    const auto vandalized = run(tensors, vandal, devices);
    CHECK(vandalized.at(0).faults.at(0).rule == "input-changed");
    CHECK(run(tensors, oracle_stage(), devices).at(0).passed());
}

TEST_CASE("a refusal is a result of its own") {
    const Tensors tensors = load_case(parse_case("tokens=8,dim=8,block=2048", 1), 1);
    FakeDevice device;
    const auto results = run(tensors, fake_stage(), {{.name = "fake", .device = &device}});
    REQUIRE(results.size() == 1);
    CHECK(results[0].refusal == "a block of more than 1024 tokens");
    CHECK_FALSE(failed(results[0]));
    CHECK_FALSE(results[0].passed());
    CHECK(refusal_of(fake_stage(), tensors.problem()) == results[0].refusal);
}

TEST_CASE("outputs are handed over") {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    FakeDevice device;
    const std::vector<NamedDevice> devices{{.name = "fake", .device = &device}};
    std::optional<double> element;
    RunHooks hooks;
    hooks.after = [](const Result&) {};
    hooks.output = [&](std::string_view stage, std::string_view at, const Tensors& with_output) {
        CHECK(stage == "fake");
        CHECK(at == "fake");
        element = load_element(DType::fp16, with_output.problem().o.data);
    };
    const std::array stages{&fake_stage()};
    run_case({.name = "test", .tensors = &tensors}, stages, devices, hooks);
    REQUIRE(element);
    CHECK(*element == *element);  // not the poison
}

/// A device that allocates for real and remembers how much.
class CountingDevice : public FakeDevice {
  public:
    DevicePointer allocate(std::uint64_t bytes, std::string_view label) override {
        sizes.push_back(bytes);
        ++alive;
        return FakeDevice::allocate(bytes, label);
    }
    void free(DevicePointer pointer) override {
        --alive;
        FakeDevice::free(pointer);
    }
    std::vector<std::uint64_t> sizes;
    int alive = 0;
};

/// A device whose kernel does what a function of the test says for the schedule's seed.
class ScheduledDevice : public FakeDevice {
  public:
    using Fault = std::function<void(std::uint64_t seed, const Problem& problem)>;

    explicit ScheduledDevice(Fault fault, std::uint64_t seed = 1)
        : FakeDevice([fault, seed](const Problem& problem) {
              run_oracle(problem);
              fault(seed, problem);
          }),
          fault_(std::move(fault)) {}

    [[nodiscard]] std::unique_ptr<Device> with_schedule(std::uint64_t seed) const override {
        auto device = std::make_unique<ScheduledDevice>(fault_, seed);
        if (seed == finding_seed) device->findings.resize(1);
        device->finding_seed = finding_seed;
        return device;
    }

    std::uint64_t finding_seed = 0;

  private:
    Fault fault_;
};

/// The result of the fake stage under so many schedules, and its output's first element.
struct ScheduledResult {
    Result result;
    double first = 0;
};
ScheduledResult run_scheduled(ScheduledDevice& device, std::uint64_t schedules) {
    const Tensors tensors = load_case(parse_case(kSpec, 1), 1);
    ScheduledResult scheduled;
    RunHooks hooks;
    hooks.after = [&](Result result) { scheduled.result = std::move(result); };
    hooks.output = [&](std::string_view, std::string_view, const Tensors& with_output) {
        scheduled.first = load_element(DType::fp16, with_output.problem().o.data);
    };
    const std::array stages{&fake_stage()};
    const std::vector<NamedDevice> devices{{.name = "fake", .device = &device}};
    run_case({.name = "test", .tensors = &tensors}, stages, devices, hooks, {.first_seed = 1, .count = schedules});
    return scheduled;
}

TEST_CASE("equal bits under every schedule pass") {
    std::vector<std::uint64_t> seeds;
    ScheduledDevice device([&](std::uint64_t seed, const Problem&) { seeds.push_back(seed); });
    const Result result = run_scheduled(device, 4).result;
    CHECK(result.passed());
    CHECK(seeds == std::vector<std::uint64_t>{1, 2, 3, 4});
    REQUIRE(result.schedules);
    CHECK(result.schedules->runs == 4);
    CHECK_FALSE(result.schedules->seed);

    seeds.clear();
    CHECK_FALSE(run_scheduled(device, 1).result.schedules);
    CHECK(seeds == std::vector<std::uint64_t>{1});
}

TEST_CASE("the first schedule with other bits fails, and the first schedule's output is kept") {
    ScheduledDevice device([](std::uint64_t seed, const Problem& problem) {
        auto* element = static_cast<unsigned char*>(problem.o.at(0, 1, 2, 3));
        if (seed >= 3) element[0] ^= 1U;
        if (seed >= 3) store_element(DType::fp16, problem.o.data, 99);
    });
    const ScheduledResult scheduled = run_scheduled(device, 10);
    const Result& result = scheduled.result;
    CHECK(failed(result));
    CHECK(result.comparison.passed());
    REQUIRE(result.schedules);
    CHECK(result.schedules->seed == 3);
    CHECK(result.schedules->runs == 3);
    CHECK(result.schedules->difference.starts_with(
        "3 bytes of o differ from seed 1's, first at sequence 0, head 0, token 0, dim 0: 0x"));
    CHECK(result.schedules->difference.find(" instead of 0x") != std::string::npos);
    CHECK(std::abs(scheduled.first) < 10);
}

TEST_CASE("a finding, a fault or a death under one schedule fails, and names the seed") {
    ScheduledDevice finds([](std::uint64_t, const Problem&) {});
    finds.finding_seed = 5;
    const Result found = run_scheduled(finds, 10).result;
    CHECK(failed(found));
    CHECK(found.schedules->seed == 5);
    CHECK(found.findings.size() == 1);
    CHECK(found.comparison.passed());

    ScheduledDevice strays([](std::uint64_t seed, const Problem& problem) {
        if (seed == 2) set_byte(problem.o.data, -1, 0);
    });
    const Result stray = run_scheduled(strays, 10).result;
    CHECK(failed(stray));
    CHECK(stray.schedules->seed == 2);
    CHECK(stray.faults.at(0).rule == "guard-zone");

    ScheduledDevice dies([](std::uint64_t seed, const Problem&) {
        if (seed == 4) throw DeviceError("the kernel fake died");
    });
    const Result died = run_scheduled(dies, 10).result;
    CHECK(failed(died));
    CHECK(died.schedules->seed == 4);
    CHECK(died.error == "the kernel fake died");
}

TEST_CASE("a death under the first schedule ends all") {
    ScheduledDevice dies([](std::uint64_t, const Problem&) { throw DeviceError("the kernel fake died"); });
    const Result died = run_scheduled(dies, 10).result;
    CHECK(failed(died));
    CHECK(died.schedules->runs == 1);
    CHECK(died.error == "the kernel fake died");
    CHECK(died.comparison.elements == 0);
}

TEST_CASE("guard zones surround operands, except on a device that checks bounds itself; all is freed") {
    const Tensors tensors = load_case(parse_case("tokens=4,dim=8", 1), 1);
    for (const bool checks_bounds : {false, true}) {
        CountingDevice device;
        const auto results =
            run(tensors, fake_stage(), {{.name = "fake", .device = &device, .checks_bounds = checks_bounds}});
        CHECK(results.at(0).passed());
        CHECK(device.sizes == std::vector<std::uint64_t>(4, checks_bounds ? 64 : 64 + 2 * kGuardBytes));
        CHECK(device.alive == 0);
    }
}

}  // namespace
}  // namespace block_attention
