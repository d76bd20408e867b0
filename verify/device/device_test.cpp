#include "verify/device/device.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>

namespace block_attention {
namespace {

/// Records what a plan asks of a device.
class RecordingDevice final : public Device {
  public:
    [[nodiscard]] const DeviceProperties& properties() const override { return properties_; }
    DevicePointer allocate(std::uint64_t bytes, std::string_view label) override {
        next_ += 0x1000;
        live[next_] = std::string(label) + ":" + std::to_string(bytes);
        return next_;
    }
    void free(DevicePointer pointer) override { live.erase(pointer); }
    void copy_to_device(DevicePointer to, std::span<const std::byte> from) override {
        copies[to] = {from.begin(), from.end()};
    }
    void copy_to_host(std::span<std::byte>, DevicePointer) override {}
    void poison(DevicePointer, std::uint64_t, std::byte) override {}
    std::array<std::byte, 128> encode(const TensorMapArgument&, DevicePointer base) override {
        std::array<std::byte, 128> map{};
        std::memcpy(map.data(), &base, sizeof base);
        return map;
    }
    void launch(const DeviceLaunch& launch) override {
        if (fail) throw DeviceError("refused");
        live_at_launch = live.size();
        launches.push_back(launch);
    }
    void synchronize() override { ++synchronized; }
    std::vector<Finding> take_findings() override { return {}; }

    std::map<DevicePointer, std::string> live;
    std::map<DevicePointer, std::vector<std::byte>> copies;
    std::vector<DeviceLaunch> launches;
    std::size_t live_at_launch = 0;
    int synchronized = 0;
    bool fail = false;

  private:
    DeviceProperties properties_;
    DevicePointer next_ = 0;
};

std::uint64_t pointer_in(const KernelParameter& parameter) {
    std::uint64_t pointer = 0;
    std::memcpy(&pointer, parameter.bytes.data(), sizeof pointer);
    return pointer;
}

const KernelModule kModule{"m", "m.cu", "", {}};

Plan make_plan() {
    Plan plan;
    plan.tables.push_back(make_table<std::int32_t>("tiles", {1, 2, 3}));
    Launch launch;
    launch.module = &kModule;
    launch.kernel = "k";
    launch.grid = {2, 3, 4};
    launch.block = {64, 1, 1};
    launch.dynamic_shared_bytes = 128;
    launch.arguments = {BufferArgument{Operand::q, 16}, TableArgument{0}, value_argument(1.5F),
                        TensorMapArgument{Operand::k, 32, DType::fp16, {}, {}, {}, Swizzle::none}};
    plan.launches.push_back(launch);
    return plan;
}

std::array<DevicePointer, kOperands> addresses() {
    std::array<DevicePointer, kOperands> operands{};
    operands[static_cast<std::size_t>(Operand::q)] = 0x100000;
    operands[static_cast<std::size_t>(Operand::k)] = 0x200000;
    return operands;
}

TEST_CASE("a plan's arguments get this device's addresses") {
    RecordingDevice device;
    run_plan(device, make_plan(), addresses());
    REQUIRE(device.launches.size() == 1);
    const DeviceLaunch& launch = device.launches.front();
    CHECK(launch.module == &kModule);
    CHECK(launch.kernel == "k");
    CHECK(launch.grid == Dim3{2, 3, 4});
    CHECK(launch.block == Dim3{64, 1, 1});
    CHECK(launch.dynamic_shared_bytes == 128);
    REQUIRE(launch.parameters.size() == 4);
    CHECK(pointer_in(launch.parameters[0]) == 0x100010);
    const DevicePointer table = pointer_in(launch.parameters[1]);
    CHECK(device.copies.at(table) == make_table<std::int32_t>("", {1, 2, 3}).bytes);
    CHECK(launch.parameters[2].bytes == value_argument(1.5F).bytes);
    CHECK(launch.parameters[2].alignment == 4);
    CHECK(launch.parameters[3].bytes.size() == 128);
    CHECK(launch.parameters[3].alignment == 128);
    CHECK(pointer_in(launch.parameters[3]) == 0x200020);
    CHECK(device.synchronized == 1);
}

TEST_CASE("tables live as long as the launches, also when one fails") {
    RecordingDevice device;
    run_plan(device, make_plan(), addresses());
    CHECK(device.live_at_launch == 1);
    CHECK(device.live.empty());

    device.fail = true;
    CHECK_THROWS_AS(run_plan(device, make_plan(), addresses()), DeviceError);
    CHECK(device.live.empty());
}

TEST_CASE("an operand that the problem lacks is named") {
    RecordingDevice device;
    auto operands = addresses();
    operands[static_cast<std::size_t>(Operand::k)] = 0;
    CHECK_THROWS_WITH_AS(run_plan(device, make_plan(), operands), "the plan uses operand k, which is not given",
                         DeviceError);
}

TEST_CASE("what a device runs is a matter of the module's target") {
    const auto refusal = [](std::string_view ptx, int architecture, bool specific) {
        const DeviceProperties device{
            .name = "a GPU", .architecture = architecture, .multiprocessors = 1, .memory_bytes = 1};
        DeviceProperties chosen = device;
        chosen.specific = specific;
        return cannot_run(chosen, KernelModule{"m", "m.cu", ptx, {}}).value_or("runs");
    };
    CHECK(refusal(".version 9.0\n.target sm_75\n", 90, true) == "runs");
    CHECK(refusal(".version 9.0\n.target sm_90a\n", 90, true) == "runs");
    CHECK(refusal(".version 9.0\n.target sm_90a\n", 90, false) == "m's kernels are for sm_90a, and this is sm_90");
    CHECK(refusal(".version 9.0\n.target sm_90a\n", 100, true) == "m's kernels are for sm_90a, and this is sm_100a");
    CHECK(refusal(".version 9.0\n.target sm_100a, debug\n", 90, true) ==
          "m's kernels are for sm_100a, and this is sm_90a");
    CHECK(refusal(".version 9.0\n.target sm_100f\n", 103, true) == "runs");
    CHECK(refusal(".version 9.0\n.target sm_120\n", 100, true) == "m's kernels are for sm_120, and this is sm_100a");
    CHECK(refusal("no PTX", 100, true) == "runs");
}

}  // namespace
}  // namespace block_attention
