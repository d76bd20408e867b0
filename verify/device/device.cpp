#include "verify/device/device.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>
#include <variant>

namespace block_attention {

namespace {

/// A plan's tables in device memory, freed at the end.
class DeviceTables {
  public:
    DeviceTables(Device& device, const std::vector<Table>& tables) : device_(device) {
        pointers_.reserve(tables.size());
        for (const auto& table : tables) {
            pointers_.push_back(device.allocate(table.bytes.size(), table.name));
            device.copy_to_device(pointers_.back(), table.bytes);
        }
    }
    DeviceTables(const DeviceTables&) = delete;
    DeviceTables& operator=(const DeviceTables&) = delete;
    ~DeviceTables() {
        // A device whose kernel has died may refuse; what matters then is the error that is on its way.
        for (const DevicePointer pointer : pointers_) {
            try {
                device_.free(pointer);
            } catch (const DeviceError&) {
                return;
            }
        }
    }

    [[nodiscard]] DevicePointer at(std::size_t table) const { return pointers_.at(table); }

  private:
    Device& device_;
    std::vector<DevicePointer> pointers_;
};

KernelParameter pointer_parameter(DevicePointer pointer) {
    KernelParameter parameter{std::vector<std::byte>(sizeof pointer), alignof(DevicePointer)};
    std::memcpy(parameter.bytes.data(), &pointer, sizeof pointer);
    return parameter;
}

/// Turns arguments into parameters with this device's addresses.
struct Resolver {
    Device& device;
    const DeviceTables& tables;
    const std::array<DevicePointer, kOperands>& operands;

    [[nodiscard]] DevicePointer address(Operand operand, std::int64_t byte_offset) const {
        const DevicePointer base = operands[static_cast<std::size_t>(operand)];
        if (base == 0) throw DeviceError(fmt::format("the plan uses operand {}, which is not given", name_of(operand)));
        return base + static_cast<DevicePointer>(byte_offset);
    }
    KernelParameter operator()(const BufferArgument& argument) const {
        return pointer_parameter(address(argument.operand, argument.byte_offset));
    }
    KernelParameter operator()(const TableArgument& argument) const {
        return pointer_parameter(tables.at(argument.table));
    }
    KernelParameter operator()(const ValueArgument& argument) const { return {argument.bytes, argument.alignment}; }
    KernelParameter operator()(const TensorMapArgument& argument) const {
        const auto map = device.encode(argument, address(argument.operand, argument.byte_offset));
        return {{map.begin(), map.end()}, 128};
    }
};

}  // namespace

void run_plan(Device& device, const Plan& plan, const std::array<DevicePointer, kOperands>& operands) {
    const DeviceTables tables(device, plan.tables);
    for (const auto& launch : plan.launches) {
        DeviceLaunch resolved{
            launch.module, launch.kernel, launch.grid, launch.block, launch.cluster, launch.dynamic_shared_bytes, {}};
        for (const auto& argument : launch.arguments) {
            resolved.parameters.push_back(std::visit(Resolver{device, tables, operands}, argument));
        }
        device.launch(resolved);
    }
    device.synchronize();
}

std::optional<std::string> cannot_run(const DeviceProperties& device, const KernelModule& module) {
    constexpr std::string_view kDirective = ".target sm_";
    const std::size_t at = module.ptx.find(kDirective);
    if (at == std::string_view::npos) return std::nullopt;  // whoever loads it will say what is wrong
    const std::string_view target = module.ptx.substr(at + kDirective.size());
    int architecture = 0;
    const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), architecture);
    const auto digits = static_cast<std::size_t>(end - target.data());
    const char suffix = digits < target.size() ? target[digits] : '\n';
    const bool family = suffix == 'f';
    const bool specific = suffix == 'a';
    bool runs = architecture <= device.architecture;
    if (family) runs = runs && architecture / 10 == device.architecture / 10;
    if (specific) runs = architecture == device.architecture && device.specific;
    if (error != std::errc{} || runs) return std::nullopt;
    return fmt::format("{}'s kernels are for sm_{}, and this is sm_{}{}", module.name,
                       target.substr(0, digits + (family || specific ? 1 : 0)), device.architecture,
                       device.specific ? "a" : "");
}

}  // namespace block_attention
