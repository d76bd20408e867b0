#include "verify/device/device.h"

#include <fmt/format.h>

#include <cstring>
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

}  // namespace block_attention
