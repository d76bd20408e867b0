#include "verify/ptx_command/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "verify/ptx_command/launch_spec.h"
#include "verify/simulator/layout/tensor_map.h"
#include "verify/text.h"

namespace block_attention {
namespace {

namespace ptx = simulator::ptx;

/// cuda.h aligns a CUtensorMap to 64 bytes, from 13.0 on to 128.
constexpr std::uint32_t kLeastTensorMapAlignment = 64;

void mark_module_variables(const ptx::Operand& operand, std::vector<bool>& used) {
    if (operand.kind == ptx::Operand::Kind::variable && operand.module_scope) used[operand.index] = true;
    for (const ptx::Operand& element : operand.elements) mark_module_variables(element, used);
}

/// Places a variable behind the ones before it.
void add(const ptx::Variable& variable, SharedUse& use) {
    const std::uint32_t alignment = std::max(1U, variable.alignment);
    if (variable.bytes == 0) {
        use.dynamic = true;
        use.dynamic_alignment = std::max(use.dynamic_alignment, alignment);
    } else {
        use.static_bytes = (use.static_bytes + alignment - 1) / alignment * alignment + variable.bytes;
    }
}

bool looks_like_tensor_map(const ptx::Variable& parameter) {
    return parameter.bytes == simulator::kTensorMapBytes && parameter.alignment >= kLeastTensorMapAlignment;
}

std::string extents(const std::vector<std::uint32_t>& numbers) { return fmt::format("{}", fmt::join(numbers, " x ")); }

std::string list_parameters(const ptx::Function& kernel) {
    constexpr std::string_view kTitle = "parameter";
    std::size_t width = kTitle.size();
    for (const ptx::Variable& parameter : kernel.parameters) width = std::max(width, parameter.name.size());
    std::string text = fmt::format("  {:<{}}  bytes  alignment\n", kTitle, width);
    for (const ptx::Variable& parameter : kernel.parameters) {
        fmt::format_to(std::back_inserter(text), "  {:<{}}  {:>5}  {:>9}{}\n", parameter.name, width, parameter.bytes,
                       parameter.alignment, looks_like_tensor_map(parameter) ? "  tensor map" : "");
    }
    return text;
}

std::string list_kernel(const ptx::Module& module, const ptx::Function& kernel) {
    std::string text = fmt::format("{}\n", kernel.name);
    auto to = std::back_inserter(text);
    if (kernel.required_threads) fmt::format_to(to, "  block: {} (.reqntid)\n", extents(*kernel.required_threads));
    if (kernel.max_threads) {
        std::uint64_t threads = 1;
        for (const std::uint32_t extent : *kernel.max_threads) threads *= extent;
        fmt::format_to(to, "  block: at most {} (.maxntid)\n", counted(static_cast<std::int64_t>(threads), "thread"));
    }
    if (kernel.required_cluster) {
        fmt::format_to(to, "  cluster: {} (.reqnctapercluster)\n", extents(*kernel.required_cluster));
    }
    if (kernel.max_registers) fmt::format_to(to, "  registers: at most {} (.maxnreg)\n", *kernel.max_registers);
    const SharedUse use = shared_use(module, kernel);
    fmt::format_to(
        to, "  shared memory: {} static{}\n", counted(static_cast<std::int64_t>(use.static_bytes), "byte"),
        use.dynamic ? fmt::format(", and dynamic (aligned to {})", use.dynamic_alignment) : ", none dynamic");
    if (kernel.parameters.empty()) {
        text += "  no parameters\n";
    } else {
        text += list_parameters(kernel);
    }
    return text;
}

}  // namespace

SharedUse shared_use(const ptx::Module& module, const ptx::Function& kernel) {
    SharedUse use;
    for (const ptx::Variable& variable : kernel.variables) {
        if (variable.space == ptx::Space::shared) add(variable, use);
    }
    std::vector<bool> used(module.variables.size());
    for (const ptx::Instruction& instruction : kernel.instructions) {
        for (const ptx::Operand& operand : instruction.operands) mark_module_variables(operand, used);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (used[i] && module.variables[i].space == ptx::Space::shared) add(module.variables[i], use);
    }
    return use;
}

std::string list_kernels(const ptx::Module& module) {
    const std::vector<const ptx::Function*> kernels = kernels_of(module);
    std::string text =
        fmt::format("{}: PTX {}.{} for {}, {}\n", module.path, module.version_major, module.version_minor,
                    module.target, counted(static_cast<std::int64_t>(kernels.size()), "kernel"));
    for (const ptx::Function* kernel : kernels) text += fmt::format("\n{}", list_kernel(module, *kernel));
    return text;
}

}  // namespace block_attention
