#include "verify/device/simulator_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace block_attention {
namespace {

/// out[i] = factor * in[i], one thread an element.
constexpr std::string_view kScalePtx = R"(
.version 9.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 in, .param .u64 out, .param .f32 factor)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    .loc 1 7 3
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    .loc 1 8 3
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    .loc 1 9 3
    st.global.f32 [%rd5], %f3;
    ret;
}
.visible .entry die()
{
    trap;
}
.file 1 "/home/someone/project/kernels/scale.cu"
)";

const KernelModule kModule{"scale", "kernels/scale.cu", kScalePtx, {}};

Plan make_plan(std::uint32_t threads) {
    Plan plan;
    Launch launch;
    launch.module = &kModule;
    launch.kernel = "scale";
    launch.block = {threads, 1, 1};
    launch.arguments = {BufferArgument{Operand::q}, BufferArgument{Operand::o}, value_argument(3.0F)};
    plan.launches.push_back(launch);
    return plan;
}

/// Four floats in, four floats out.
struct Buffers {
    explicit Buffers(Device& device) : in(device.allocate(16, "q")), out(device.allocate(16, "o")) {
        const std::array values{1.0F, 2.0F, -3.0F, 0.5F};
        device.copy_to_device(in, std::as_bytes(std::span(values)));
        operands[static_cast<std::size_t>(Operand::q)] = in;
        operands[static_cast<std::size_t>(Operand::o)] = out;
    }
    DevicePointer in;
    DevicePointer out;
    std::array<DevicePointer, kOperands> operands{};
};

TEST_CASE("a plan runs on the simulated device") {
    const auto device = open_simulator_device({});
    CHECK(device->properties().name == "simulator sm_100a");
    CHECK(device->properties().architecture == 100);
    CHECK(device->properties().multiprocessors == 148);
    const Buffers buffers(*device);
    run_plan(*device, make_plan(4), buffers.operands);
    std::array<float, 4> result{};
    device->copy_to_host(std::as_writable_bytes(std::span(result)), buffers.out);
    CHECK(result == std::array{3.0F, 6.0F, -9.0F, 1.5F});
    CHECK(device->take_findings().empty());
}

TEST_CASE("findings name the buffer, and the source file from the project's root") {
    SimulatorDeviceOptions options;
    options.architecture = 90;
    options.source_root = "/home/someone/project";
    const auto device = open_simulator_device(options);
    CHECK(device->properties().name == "simulator sm_90a");
    const Buffers buffers(*device);
    run_plan(*device, make_plan(6), buffers.operands);
    const auto findings = device->take_findings();
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].rule == "out-of-bounds");
    CHECK(findings[0].file == "kernels/scale.cu");
    CHECK(findings[0].line == 8);
    CHECK(findings[0].thread == Dim3{4, 0, 0});
    CHECK(findings[0].occurrences == 2);
    CHECK(findings[0].message.find("0 bytes past the end of 'q' (16 bytes") != std::string::npos);
    CHECK(findings[1].line == 9);
    CHECK(device->take_findings().empty());
}

TEST_CASE("poisoned memory counts as never written") {
    const auto device = open_simulator_device({});
    const Buffers buffers(*device);
    device->poison(buffers.in + 4, 4, std::byte{0xFF});
    run_plan(*device, make_plan(4), buffers.operands);
    const auto findings = device->take_findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == "uninitialized-read");
    CHECK(findings[0].thread == Dim3{1, 0, 0});
}

TEST_CASE("a launch that dies makes synchronize throw once") {
    const auto device = open_simulator_device({});
    DeviceLaunch launch;
    launch.module = &kModule;
    launch.kernel = "die";
    device->launch(launch);
    CHECK_THROWS_WITH_AS(device->synchronize(), "simulator: kernel 'die' died; see the findings", DeviceError);
    device->synchronize();
    const auto findings = device->take_findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == "trap");
}

TEST_CASE("a device with another schedule is as it was opened, and reads a module once for all") {
    SimulatorDeviceOptions options;
    options.architecture = 90;
    options.source_root = "/home/someone/project";
    const auto device = open_simulator_device(options);
    const Buffers buffers(*device);
    run_plan(*device, make_plan(6), buffers.operands);
    CHECK(device->take_findings().size() == 2);

    const auto other = device->with_schedule(2);
    REQUIRE(other != nullptr);
    CHECK(other->properties().name == device->properties().name);
    CHECK(other->take_findings().empty());
    const Buffers fresh(*other);
    CHECK(fresh.in == buffers.in);
    run_plan(*other, make_plan(6), fresh.operands);
    const auto findings = other->take_findings();
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].file == "kernels/scale.cu");
    std::array<float, 4> values{};
    other->copy_to_host(std::as_writable_bytes(std::span(values)), fresh.out);
    CHECK(values == std::array{3.0F, 6.0F, -9.0F, 1.5F});
}

TEST_CASE("every fault of a request is a DeviceError") {
    const auto device = open_simulator_device({});
    DeviceLaunch launch;
    launch.module = &kModule;
    launch.kernel = "missing";
    CHECK_THROWS_WITH_AS(device->launch(launch),
                         "simulator: module scale.ptx has no kernel 'missing'; it has: scale, die", DeviceError);
    CHECK_THROWS_AS(device->free(0x1234), DeviceError);
    CHECK_THROWS_AS(device->allocate(UINT64_MAX, "huge"), DeviceError);
    CHECK_THROWS_AS(device->encode({}, 0), DeviceError);
    const KernelModule broken{"broken", "broken.cu", ".version 9.0\n.target sm_75\nnonsense", {}};
    launch.module = &broken;
    CHECK_THROWS_AS(device->launch(launch), DeviceError);
    SimulatorDeviceOptions options;
    options.architecture = 9;
    CHECK_THROWS_AS(open_simulator_device(options), DeviceError);
}

}  // namespace
}  // namespace block_attention
