#include "verify/ptx_command/launch_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "verify/suggest.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

namespace ptx = simulator::ptx;

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

const std::array<std::string, 10>& keys() {
    static const std::array<std::string, 10> kKeys{"kernel",  "grid",      "block",   "cluster", "dynamic_shared_bytes",
                                                   "buffers", "arguments", "outputs", "expect",  "target"};
    return kKeys;
}

/// Names in a row; of very many, the first.
std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 20;
    if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
    return fmt::format("{} and {} more (see --list)", fmt::join(names.begin(), names.begin() + kMost, ", "),
                       names.size() - kMost);
}

const ptx::Function& find_kernel(const JsonValue& root, const ptx::Module& module) {
    const std::vector<const ptx::Function*> kernels = kernels_of(module);
    if (kernels.empty()) throw UsageError(fmt::format("{} has no kernel (.entry with a body)", module.path));
    std::vector<std::string> names;
    for (const ptx::Function* kernel : kernels) names.emplace_back(kernel->name);
    const auto name = root.find("kernel");
    if (!name) {
        if (kernels.size() == 1) return *kernels.front();
        root.fail(fmt::format("the key \"kernel\" is missing, and {} has {} kernels: {}", module.path, kernels.size(),
                              listed(names)));
    }
    if (const ptx::Function* found = module.find_kernel(name->string())) return *found;
    name->fail(fmt::format("{} has no kernel \"{}\"; it has {}", module.path, name->string(), listed(names)));
}

Dim3 to_dim3(const std::vector<std::uint32_t>& extents) {
    const auto at = [&](std::size_t i) { return i < extents.size() ? extents[i] : 1; };
    return {at(0), at(1), at(2)};
}

/// A number or a list of one to three; `otherwise` if the key is missing.
Dim3 read_dim3(const JsonValue& root, const std::string& key,
               const std::optional<std::vector<std::uint32_t>>& otherwise) {
    const auto value = root.find(key);
    if (!value) return otherwise ? to_dim3(*otherwise) : to_dim3({});
    const auto extent = [](const JsonValue& one) {
        return static_cast<std::uint32_t>(one.unsigned_integer(1, kMost32));
    };
    if (!value->is_array()) return {extent(*value), 1, 1};
    std::vector<std::uint32_t> extents;
    for (const JsonValue& element : value->elements()) extents.push_back(extent(element));
    if (extents.empty() || extents.size() > 3) {
        value->fail(fmt::format("{} extents; there are one to three", extents.size()));
    }
    return to_dim3(extents);
}

Target check_target(std::string_view place, std::string_view name) {
    const auto target = parse_target(name);
    if (target && target->suffix != 'f' && target->architecture >= kLeastArchitecture) return *target;
    throw UsageError(fmt::format("{}: \"{}\" cannot be simulated; take sm_90a, sm_100a, or another sm_{} or later",
                                 place, name, kLeastArchitecture));
}

Target choose_target(const JsonValue& root, const ptx::Module& module, const std::optional<std::string>& architecture) {
    if (architecture) return check_target("--arch", *architecture);
    if (const auto value = root.find("target")) return check_target(value->place(), value->string());
    const auto target = parse_target(module.target);
    if (!target) {
        throw UsageError(fmt::format("{}: target '{}' is not an sm_ architecture", module.path, module.target));
    }
    return simulated_target(*target);
}

/// "n (4 bytes), x (8 bytes)".
std::string list_parameters(const ptx::Function& kernel) {
    std::vector<std::string> parameters;
    for (const ptx::Variable& parameter : kernel.parameters) {
        parameters.push_back(fmt::format("{} ({} bytes)", parameter.name, parameter.bytes));
    }
    return listed(parameters);
}

std::vector<Field> read_arguments(const JsonValue& root, const ptx::Function& kernel, const ArgumentContext& context) {
    const auto value = root.find("arguments");
    const std::vector<JsonValue> elements = value ? value->elements() : std::vector<JsonValue>{};
    if (elements.size() != kernel.parameters.size()) {
        root.fail(fmt::format("{} arguments, but the kernel \"{}\" has {} parameters{}{}", elements.size(), kernel.name,
                              kernel.parameters.size(), kernel.parameters.empty() ? "" : ": ",
                              list_parameters(kernel)));
    }
    std::vector<Field> arguments;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const ptx::Variable& parameter = kernel.parameters[i];
        Field argument = read_argument(elements[i], context);
        const bool may_be_padded = std::holds_alternative<StructureValue>(argument.value);
        const bool fits = may_be_padded ? argument.bytes <= parameter.bytes : argument.bytes == parameter.bytes;
        if (!fits) {
            elements[i].fail(fmt::format("{} of {} bytes, but the parameter \"{}\" has {}", argument.what,
                                         argument.bytes, parameter.name, parameter.bytes));
        }
        arguments.push_back(std::move(argument));
    }
    return arguments;
}

std::vector<OutputFile> read_outputs(const JsonValue& object, const std::vector<BufferSpec>& buffers,
                                     const std::filesystem::path& folder) {
    std::vector<OutputFile> outputs;
    for (const auto& [name, value] : object.members()) {
        outputs.push_back({find_buffer(object, name, buffers), folder / value.string()});
    }
    return outputs;
}

}  // namespace

LaunchSpec read_launch_spec(const std::filesystem::path& path, const ptx::Module& module,
                            const std::optional<std::string>& architecture) {
    const JsonFile file(path);
    const JsonValue root = file.root();
    root.allow(keys());
    const std::filesystem::path folder = path.parent_path();
    LaunchSpec spec;
    spec.kernel = &find_kernel(root, module);
    spec.target = choose_target(root, module, architecture);
    spec.grid = read_dim3(root, "grid", std::nullopt);
    if (!root.find("block") && !spec.kernel->required_threads) {
        root.fail(fmt::format("the key \"block\" is missing, and the kernel \"{}\" doesn't fix it (.reqntid)",
                              spec.kernel->name));
    }
    spec.block = read_dim3(root, "block", spec.kernel->required_threads);
    spec.cluster = read_dim3(root, "cluster", spec.kernel->required_cluster);
    if (const auto bytes = root.find("dynamic_shared_bytes")) {
        spec.dynamic_shared_bytes = static_cast<std::uint32_t>(bytes->unsigned_integer(0, kMost32));
    }
    if (const auto buffers = root.find("buffers")) spec.buffers = read_buffers(*buffers, folder);
    spec.arguments =
        read_arguments(root, *spec.kernel, {.buffers = spec.buffers, .architecture = spec.target.architecture});
    if (const auto outputs = root.find("outputs")) spec.outputs = read_outputs(*outputs, spec.buffers, folder);
    if (const auto expected = root.find("expect")) {
        spec.expectations = read_expectations(*expected, spec.buffers, folder);
    }
    return spec;
}

std::vector<const ptx::Function*> kernels_of(const ptx::Module& module) {
    std::vector<const ptx::Function*> kernels;
    for (const ptx::Function& function : module.functions) {
        if (function.entry && function.has_body) kernels.push_back(&function);
    }
    return kernels;
}

}  // namespace block_attention
