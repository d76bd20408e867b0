#include "verify/device/simulator_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "verify/simulator/layout/tensor_map.h"
#include "verify/simulator/ptx/parse.h"
#include "verify/simulator/simulator.h"

namespace block_attention {

namespace {

/// Runs a call of the simulator; what it throws becomes a DeviceError.
template <typename Call>
auto translate(Call call) {
    try {
        return call();
    } catch (const simulator::SimulatorError& error) {
        throw DeviceError(fmt::format("simulator: {}", error.what()));
    } catch (const simulator::ptx::PtxError& error) {
        throw DeviceError(fmt::format("simulator: {}", error.what()));
    }
}

/// Streaming multiprocessors of an H200 and a B200.
std::uint32_t default_multiprocessors(int architecture) { return architecture >= 100 ? 148 : 132; }

simulator::Options simulator_options(const SimulatorDeviceOptions& options) {
    if (options.architecture < 75 || options.multiprocessors < 0) {
        throw DeviceError(fmt::format("cannot simulate sm_{} with {} multiprocessors: the least are sm_75 and 1",
                                      options.architecture, options.multiprocessors));
    }
    simulator::Options result;
    result.architecture = options.architecture;
    result.specific = options.specific;
    result.multiprocessors = options.multiprocessors == 0 ? default_multiprocessors(options.architecture)
                                                          : static_cast<std::uint32_t>(options.multiprocessors);
    result.seed = options.seed;
    result.host_threads = options.host_threads;
    return result;
}

simulator::TensorMapType tensor_map_type(DType dtype) {
    switch (dtype) {
        case DType::fp16:
            return simulator::TensorMapType::float16;
        case DType::bf16:
            return simulator::TensorMapType::bfloat16;
        case DType::fp32:
            return simulator::TensorMapType::float32;
    }
    return simulator::TensorMapType::float32;
}

simulator::SwizzleMode swizzle_mode(Swizzle swizzle) {
    switch (swizzle) {
        case Swizzle::none:
            return simulator::SwizzleMode::none;
        case Swizzle::b32:
            return simulator::SwizzleMode::b32;
        case Swizzle::b64:
            return simulator::SwizzleMode::b64;
        case Swizzle::b128:
            return simulator::SwizzleMode::b128;
    }
    return simulator::SwizzleMode::none;
}

/// Modules that were read, for every device with the same options but for the seed.
using ReadModules = std::unordered_map<const KernelModule*, std::shared_ptr<const simulator::ptx::Module>>;

class SimulatorDevice final : public Device {
  public:
    SimulatorDevice(const SimulatorDeviceOptions& options, std::shared_ptr<ReadModules> read)
        : options_(options),
          simulator_(simulator_options(options)),
          source_root_(options.source_root),
          read_(std::move(read)) {
        if (!source_root_.empty() && !source_root_.ends_with('/')) source_root_ += '/';
        properties_.name = "simulator " + simulator_.target();
        properties_.architecture = simulator_.options().architecture;
        properties_.specific = simulator_.options().specific;
        properties_.multiprocessors = static_cast<int>(simulator_.options().multiprocessors);
        properties_.memory_bytes = simulator_.options().memory_bytes;
    }

    [[nodiscard]] const DeviceProperties& properties() const override { return properties_; }

    DevicePointer allocate(std::uint64_t bytes, std::string_view label) override {
        return translate([&] { return simulator_.allocate(bytes, label); });
    }
    void free(DevicePointer pointer) override {
        translate([&] { simulator_.free(pointer); });
    }
    void copy_to_device(DevicePointer to, std::span<const std::byte> from) override {
        translate([&] { simulator_.write(to, from); });
    }
    void copy_to_host(std::span<std::byte> to, DevicePointer from) override {
        translate([&] { simulator_.read(from, to); });
    }
    void poison(DevicePointer pointer, std::uint64_t bytes, std::byte pattern) override {
        translate([&] { simulator_.poison(pointer, bytes, pattern); });
    }

    std::array<std::byte, 128> encode(const TensorMapArgument& map, DevicePointer base) override;

    void launch(const DeviceLaunch& launch) override;
    void synchronize() override {
        if (!death_.empty()) throw DeviceError(std::exchange(death_, {}));
    }
    std::vector<Finding> take_findings() override;

    [[nodiscard]] std::unique_ptr<Device> with_schedule(std::uint64_t seed) const override {
        SimulatorDeviceOptions options = options_;
        options.seed = seed;
        return std::make_unique<SimulatorDevice>(options, read_);
    }

  private:
    simulator::ModuleHandle load(const KernelModule& module);

    SimulatorDeviceOptions options_;
    simulator::Simulator simulator_;
    std::string source_root_;
    DeviceProperties properties_;
    std::shared_ptr<ReadModules> read_;
    std::unordered_map<const KernelModule*, simulator::ModuleHandle> modules_;
    std::string death_;  ///< of a launch since the last synchronize()
};

simulator::ModuleHandle SimulatorDevice::load(const KernelModule& module) {
    if (const auto found = modules_.find(&module); found != modules_.end()) return found->second;
    std::shared_ptr<const simulator::ptx::Module>& read = (*read_)[&module];
    if (!read) {
        read = std::make_shared<const simulator::ptx::Module>(
            simulator::ptx::parse(std::string(module.ptx), fmt::format("{}.ptx", module.name)));
    }
    const auto handle = simulator_.load(read);
    modules_.emplace(&module, handle);
    return handle;
}

std::array<std::byte, 128> SimulatorDevice::encode(const TensorMapArgument& map, DevicePointer base) {
    const std::size_t rank = map.dims.size();
    if (rank < 1 || rank > simulator::kMaxTensorRank || map.byte_strides.size() != rank - 1 || map.box.size() != rank) {
        throw DeviceError(
            fmt::format("simulator: the tensor map of {} has {} dims, {} byte strides and {} box entries; 1 "
                        "to 5 dims are allowed, with one byte stride fewer and as many box entries",
                        name_of(map.operand), rank, map.byte_strides.size(), map.box.size()));
    }
    simulator::TensorMap encoded;
    encoded.type = tensor_map_type(map.dtype);
    encoded.rank = static_cast<std::uint32_t>(rank);
    encoded.address = base;
    std::ranges::copy(map.dims, encoded.dims.begin());
    std::ranges::copy(map.byte_strides, encoded.byte_strides.begin());
    std::ranges::copy(map.box, encoded.box.begin());
    encoded.swizzle = swizzle_mode(map.swizzle);
    const std::string fault = simulator::validate(encoded, properties_.architecture);
    if (!fault.empty()) {
        throw DeviceError(fmt::format("simulator: encoding the tensor map of {}: {}", name_of(map.operand), fault));
    }
    return simulator::encode_tensor_map(encoded);
}

void SimulatorDevice::launch(const DeviceLaunch& launch) {
    translate([&] {
        simulator::LaunchRequest request;
        request.module = load(*launch.module);
        request.kernel = launch.kernel;
        request.grid = launch.grid;
        request.block = launch.block;
        request.cluster = launch.cluster;
        request.dynamic_shared_bytes = launch.dynamic_shared_bytes;
        for (const auto& parameter : launch.parameters) request.parameters.emplace_back(parameter.bytes);
        if (!simulator_.launch(request) && death_.empty()) {
            death_ = fmt::format("simulator: kernel '{}' died; see the findings", launch.kernel);
        }
    });
}

std::vector<Finding> SimulatorDevice::take_findings() {
    std::vector<Finding> findings = simulator_.take_findings();
    for (auto& finding : findings) {
        const auto make_relative = [this](std::string& text) {
            if (source_root_.empty()) return;
            for (std::size_t at = 0; (at = text.find(source_root_, at)) != std::string::npos;) {
                text.erase(at, source_root_.size());
            }
        };
        make_relative(finding.file);
        make_relative(finding.message);
        std::ranges::for_each(finding.callers, make_relative);
    }
    return findings;
}

}  // namespace

std::unique_ptr<Device> open_simulator_device(const SimulatorDeviceOptions& options) {
    return std::make_unique<SimulatorDevice>(options, std::make_shared<ReadModules>());
}

}  // namespace block_attention
