#include "verify/simulator/conformance/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "reference/parallel.h"
#include "verify/device/simulator_device.h"
#include "verify/simulator/conformance/tuples.h"

namespace block_attention::conformance {

namespace {

/// The most results that a form has.
constexpr std::size_t kMaxResults = 4;

/// What memory holds before a kernel, so that a result that was not written shows.
constexpr std::byte kBlank{0xA5};

/// The bytes of the parameter `bytes`.
constexpr std::array<unsigned char, kMemoryBytes> kBytes{
    0x10, 0x91, 0x22, 0xA3, 0x34, 0xB5, 0x46, 0xC7, 0x58, 0xD9, 0x6A, 0xEB, 0x7C, 0xFD, 0x8E, 0x0F,
    0x01, 0x82, 0x13, 0x94, 0x25, 0xA6, 0x37, 0xB8, 0x49, 0xCA, 0x5B, 0xDC, 0x6D, 0xEE, 0x7F, 0xF0};

KernelParameter address_parameter(DevicePointer address) {
    KernelParameter parameter{std::vector<std::byte>(sizeof address), alignof(DevicePointer)};
    std::memcpy(parameter.bytes.data(), &address, sizeof address);
    return parameter;
}

SimulatorDeviceOptions simulated_h200() {
    SimulatorDeviceOptions options;
    options.architecture = 90;
    options.host_threads = 1;
    return options;
}

}  // namespace

Hashes hash(const Form& form, const Results& results) {
    Hashes hashes{};
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
        // FNV-1a over 64-bit words, its high half folded in so that every bit counts for the 32 that remain.
        std::uint64_t state = 0xCBF29CE484222325;
        for (std::size_t j = 0; j < form.results.size(); ++j) {
            for (std::size_t t = 0; t < kTuplesPerQuarter; ++t) {
                state = (state ^ results[j * kTuples + quarter * kTuplesPerQuarter + t]) * 0x100000001B3;
                state ^= state >> 32;
            }
        }
        hashes.at(quarter) = static_cast<std::uint32_t>(state);
    }
    return hashes;
}

TupleTable::TupleTable(std::span<const Form> forms) {
    for (const auto& form : forms) {
        auto& tuples = tuples_[form.operands];
        if (tuples.empty()) tuples = make_tuples(form.operands);
    }
}

Executor::Executor(Device& device, const TupleTable& tuples)
    : device_(device),
      tuples_(tuples),
      results_(device.allocate(kMaxResults * kTupleStride, "results")),
      memory_(device.allocate(kTuples * kMemoryBytes, "memory")),
      blank_(kMaxResults * kTupleStride, kBlank) {}

DevicePointer Executor::upload(const Form& form) {
    auto& address = operands_[form.operands];
    if (address == 0) {
        const auto bytes = std::as_bytes(std::span(tuples_.of(form)));
        address = device_.allocate(bytes.size(), fmt::format("operands {}", form.operands));
        device_.copy_to_device(address, bytes);
    }
    return address;
}

Results Executor::run(const Form& form, const KernelModule& module, std::string_view kernel) {
    DeviceLaunch launch;
    launch.module = &module;
    launch.kernel = kernel;
    launch.grid = {kTuples / kThreads, 1, 1};
    launch.block = {kThreads, 1, 1};
    for (const DevicePointer address : {upload(form), results_, memory_}) {
        launch.parameters.push_back(address_parameter(address));
    }
    const auto bytes = std::as_bytes(std::span(kBytes));
    launch.parameters.push_back({{bytes.begin(), bytes.end()}, kMemoryBytes});

    const std::size_t result_bytes = form.results.size() * kTupleStride;
    device_.copy_to_device(results_, std::span(blank_).first(result_bytes));
    device_.launch(launch);
    device_.synchronize();
    Results results(form.results.size() * kTuples);
    device_.copy_to_host(std::as_writable_bytes(std::span(results)), results_);
    for (std::size_t j = 0; j < form.results.size(); ++j) {
        // A predicate is stored as 32 bits. What lies above a result is not part of it.
        const unsigned bits = form.results[j] == 'p' ? 32 : bits_of(form.results[j]);
        if (bits == 64) continue;
        const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
        for (auto& value : std::span(results).subspan(j * kTuples, kTuples)) value &= mask;
    }
    return results;
}

SimulatorExecutor::SimulatorExecutor(const TupleTable& tuples)
    : device_(open_simulator_device(simulated_h200())), executor_(*device_, tuples) {}

Simulated SimulatorExecutor::run(const Form& form) {
    constexpr std::string_view kKernel = "form";
    texts_.push_back(std::make_unique<std::string>(module_header() + kernel_text(form, kKernel)));
    modules_.push_back(std::make_unique<KernelModule>(KernelModule{form.name, form.name, *texts_.back(), {}}));
    Simulated simulated;
    try {
        simulated.results = executor_.run(form, *modules_.back(), kKernel);
    } catch (const DeviceError& error) {
        simulated.refusal = error.what();
    }
    for (const auto& finding : device_->take_findings()) simulated.findings.push_back(to_string(finding));
    return simulated;
}

std::vector<Simulated> simulate(std::span<const Form> forms, const TupleTable& tuples) {
    constexpr std::size_t kChunk = 64;
    std::vector<Simulated> simulated(forms.size());
    parallel_for(static_cast<std::int64_t>((forms.size() + kChunk - 1) / kChunk), [&](std::int64_t chunk) {
        SimulatorExecutor executor(tuples);
        const std::size_t begin = static_cast<std::size_t>(chunk) * kChunk;
        for (std::size_t i = begin; i < std::min(begin + kChunk, forms.size()); ++i)
            simulated[i] = executor.run(forms[i]);
    });
    return simulated;
}

}  // namespace block_attention::conformance
