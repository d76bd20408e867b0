#include "reference/launch.h"

#include <fmt/format.h>

namespace block_attention {
namespace {

std::string to_string(const Dim3& dim) { return fmt::format("{} x {} x {}", dim.x, dim.y, dim.z); }

struct Describe {
    const Plan& plan;

    std::string operator()(const BufferArgument& argument) const {
        return argument.byte_offset == 0
                   ? std::string(name_of(argument.operand))
                   : fmt::format("{} + {} bytes", name_of(argument.operand), argument.byte_offset);
    }
    std::string operator()(const TableArgument& argument) const { return plan.tables.at(argument.table).name; }
    std::string operator()(const ValueArgument& argument) const {
        return fmt::format("{} bytes by value", argument.bytes.size());
    }
    std::string operator()(const TensorMapArgument& argument) const {
        return fmt::format("tensor map of {}: dims {}, box {}", name_of(argument.operand),
                           fmt::join(argument.dims, " x "), fmt::join(argument.box, " x "));
    }
};

}  // namespace

std::string to_string(const Plan& plan) {
    std::string text;
    for (const Table& table : plan.tables) text += fmt::format("table {}: {} bytes\n", table.name, table.bytes.size());
    for (const Launch& launch : plan.launches) {
        std::vector<std::string> arguments;
        for (const Argument& argument : launch.arguments) arguments.push_back(std::visit(Describe{plan}, argument));
        text += fmt::format("launch {} of {}: grid {}, block {}, cluster {}, {} bytes of dynamic shared memory, ({})\n",
                            launch.kernel, launch.module->source, to_string(launch.grid), to_string(launch.block),
                            to_string(launch.cluster), launch.dynamic_shared_bytes, fmt::join(arguments, ", "));
    }
    return text;
}

}  // namespace block_attention
