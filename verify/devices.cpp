#include "verify/devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "verify/device/cuda_device.h"
#include "verify/device/simulator_device.h"
#include "verify/host_device.h"
#include "verify/suggest.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

constexpr std::string_view kHost = "host";
constexpr std::string_view kSimulator = "simulator";
constexpr std::string_view kCuda = "cuda";

struct Architecture {
    std::string_view name;
    int number;
    bool specific;
};
constexpr std::array<Architecture, 4> kArchitectures{
    {{"sm_75", 75, false}, {"sm_80", 80, false}, {"sm_90a", 90, true}, {"sm_100a", 100, true}}};

SimulatorDeviceOptions simulator_options(const DeviceRequest& request) {
    const auto* found =
        std::find_if(kArchitectures.begin(), kArchitectures.end(),
                     [&](const Architecture& architecture) { return architecture.name == request.architecture; });
    if (found == kArchitectures.end()) {
        throw UsageError(fmt::format("there is no simulated {}{}", request.architecture,
                                     suggestion(request.architecture, simulated_architectures())));
    }
    SimulatorDeviceOptions options;
    options.architecture = found->number;
    options.specific = found->specific;
    options.seed = request.seed;
    options.source_root = BLOCK_ATTENTION_SOURCE_ROOT;
    return options;
}

/// The devices that the names ask for: each at most once, in the order host, simulator, GPUs.
struct Wanted {
    bool host = false;
    bool simulator = false;
    bool every_gpu = false;
    bool gpu_required = false;  ///< named, so its absence is an error
    std::vector<int> gpus;      ///< by number
};

/// The N of "cuda:N".
std::optional<int> gpu_number(std::string_view name) {
    if (!name.starts_with(kCuda) || name.substr(kCuda.size(), 1) != ":") return std::nullopt;
    const std::string_view digits = name.substr(kCuda.size() + 1);
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size() || number < 0) return std::nullopt;
    return number;
}

Wanted parse_names(const std::vector<std::string>& names) {
    Wanted wanted;
    if (names.empty()) wanted.host = wanted.simulator = wanted.every_gpu = true;
    for (const std::string& name : names) {
        const bool all = name == "all";
        wanted.host = wanted.host || all || name == kHost;
        wanted.simulator = wanted.simulator || all || name == kSimulator;
        wanted.every_gpu = wanted.every_gpu || all || name == kCuda;
        wanted.gpu_required = wanted.gpu_required || name == kCuda;
        if (all || name == kHost || name == kSimulator || name == kCuda) continue;
        const auto number = gpu_number(name);
        if (!number) {
            const std::vector<std::string> known{"host", "simulator", "cuda", "cuda:N", "all"};
            throw UsageError(fmt::format("there is no device {}{}", name, suggestion(name, known)));
        }
        wanted.gpus.push_back(*number);
    }
    std::sort(wanted.gpus.begin(), wanted.gpus.end());
    wanted.gpus.erase(std::unique(wanted.gpus.begin(), wanted.gpus.end()), wanted.gpus.end());
    return wanted;
}

void add(DeviceSet& set, NamedDevice named, std::unique_ptr<Device> device) {
    named.device = device.get();
    set.devices.push_back(std::move(named));
    set.owned.push_back(std::move(device));
}

void add_gpu(DeviceSet& set, int number, std::unique_ptr<Device> device) {
    add(set, {.name = fmt::format("{}:{}", kCuda, number)}, std::move(device));
}

/// All GPUs that there are; if there is none, a note or an error.
void add_every_gpu(DeviceSet& set, bool required, bool simulated) {
    std::string why_not;
    for (int number = 0; auto device = open_cuda_device(number, why_not); ++number) {
        add_gpu(set, number, std::move(device));
    }
    const bool found = std::any_of(set.devices.begin(), set.devices.end(),
                                   [](const NamedDevice& device) { return device.name.starts_with(kCuda); });
    if (found) return;
    if (required) {
        throw UsageError(fmt::format("no CUDA GPU: {}; leave out --device, or take --device simulator", why_not));
    }
    set.notes.push_back(fmt::format("no CUDA GPU: {}{}", why_not, simulated ? "; kernels run in the simulator" : ""));
}

}  // namespace

const std::vector<std::string>& simulated_architectures() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names(kArchitectures.size());
        std::transform(kArchitectures.begin(), kArchitectures.end(), names.begin(),
                       [](const Architecture& architecture) { return std::string(architecture.name); });
        return names;
    }();
    return kNames;
}

DeviceSet open_devices(const DeviceRequest& request) {
    const Wanted wanted = parse_names(request.names);
    DeviceSet set;
    if (wanted.host) {
        add(set, {.name = std::string(kHost), .is_host = true}, std::make_unique<HostDevice>());
    }
    if (wanted.simulator) {
        add(set, {.name = std::string(kSimulator), .checks_bounds = true},
            open_simulator_device(simulator_options(request)));
    }
    if (wanted.every_gpu) {
        add_every_gpu(set, wanted.gpu_required, wanted.simulator);
        return set;  // any that were named by number are among them
    }
    for (const int number : wanted.gpus) {
        std::string why_not;
        auto device = open_cuda_device(number, why_not);
        if (!device) throw UsageError(fmt::format("no device cuda:{}: {}", number, why_not));
        add_gpu(set, number, std::move(device));
    }
    return set;
}

}  // namespace block_attention
