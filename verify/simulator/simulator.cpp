#include "verify/simulator/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "verify/simulator/isa/decode.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/grid.h"
#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint64_t kMaxThreads = 1024;
constexpr Dim3 kMaxBlock{1024, 1024, 64};
constexpr Dim3 kMaxGrid{0x7FFFFFFF, 65535, 65535};
constexpr std::uint64_t kMaxClusterCtas = 16;  ///< beyond 8 the driver wants a non-portable size allowed

std::string to_string(Dim3 d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); }

bool within(Dim3 d, Dim3 limit) {
    return d.x >= 1 && d.y >= 1 && d.z >= 1 && d.x <= limit.x && d.y <= limit.y && d.z <= limit.z;
}

/// Dimensions as a directive gives them; missing ones are 1.
Dim3 to_dim3(const std::vector<std::uint32_t>& numbers) {
    const auto at = [&](std::size_t i) { return i < numbers.size() ? numbers[i] : 1; };
    return {at(0), at(1), at(2)};
}

void check_target(const ptx::Module& module, const Options& options, const std::string& device) {
    std::string_view digits = module.target;
    if (!digits.starts_with("sm_")) {
        throw SimulatorError(fmt::format("{}: target '{}' is not an sm_ architecture", module.path, module.target));
    }
    digits.remove_prefix(3);
    int architecture = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), architecture);
    const std::string_view suffix(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
    bool runs = false;
    if (suffix.empty()) runs = options.architecture >= architecture;
    if (suffix == "a") runs = options.architecture == architecture && options.specific;
    if (suffix == "f") runs = options.architecture >= architecture && options.architecture / 10 == architecture / 10;
    if (error == std::errc() && runs) return;
    throw SimulatorError(
        fmt::format("{}: the module's target is {}, which the simulated {} does not run; simulate {} instead",
                    module.path, module.target, device, module.target));
}

/// The launch's own cluster, or the one that the kernel is compiled for.
Dim3 cluster_of(const LaunchRequest& request, const ptx::Function& kernel) {
    return kernel.required_cluster ? to_dim3(*kernel.required_cluster) : request.cluster;
}

void check_shape(const LaunchRequest& request, const ptx::Function& kernel) {
    const auto fail = [&](std::string_view what) {
        throw SimulatorError(fmt::format("cannot launch kernel '{}': {}", request.kernel, what));
    };
    if (!within(request.grid, kMaxGrid)) {
        fail(fmt::format("a grid of {} CTAs is outside 1x1x1 to {}", to_string(request.grid), to_string(kMaxGrid)));
    }
    if (!within(request.block, kMaxBlock) || request.block.count() > kMaxThreads) {
        fail(fmt::format("a block of {} threads; the limits are {} and {} in all", to_string(request.block),
                         to_string(kMaxBlock), kMaxThreads));
    }
    const Dim3 cluster = cluster_of(request, kernel);
    if (kernel.required_cluster && request.cluster != Dim3{} && request.cluster != cluster) {
        fail(fmt::format("a cluster of {} CTAs, but the kernel requires {} (.reqnctapercluster)",
                         to_string(request.cluster), to_string(cluster)));
    }
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0 || cluster.count() > kMaxClusterCtas) {
        fail(fmt::format("a cluster of {} CTAs; they are 1 to {} in all", to_string(cluster), kMaxClusterCtas));
    }
    if (request.grid.x % cluster.x != 0 || request.grid.y % cluster.y != 0 || request.grid.z % cluster.z != 0) {
        fail(fmt::format("a grid of {} CTAs is not divisible into clusters of {}", to_string(request.grid),
                         to_string(cluster)));
    }
    if (kernel.required_threads && to_dim3(*kernel.required_threads) != request.block) {
        fail(fmt::format("a block of {} threads, but the kernel requires {} (.reqntid)", to_string(request.block),
                         to_string(to_dim3(*kernel.required_threads))));
    }
    // The limit holds for the number of threads, whatever the block's shape (PTX ISA 11.4.2).
    if (kernel.max_threads && to_dim3(*kernel.max_threads).count() < request.block.count()) {
        fail(fmt::format("a block of {} threads, but the kernel is compiled for at most {} (.maxntid)",
                         request.block.count(), to_dim3(*kernel.max_threads).count()));
    }
}

/// Whether CTAs can tell each other something through global memory in a way that PTX defines: by atomics, and by
/// accesses that are ordered.
bool ctas_may_communicate(const ptx::Function& kernel) {
    const auto has = [](const ptx::Instruction& instruction, std::initializer_list<std::string_view> words) {
        return std::ranges::any_of(instruction.modifiers, [&](std::string_view modifier) {
            return std::ranges::find(words, modifier) != words.end();
        });
    };
    return std::ranges::any_of(kernel.instructions, [&](const ptx::Instruction& instruction) {
        if (has(instruction, {"shared", "shared::cta", "local", "param"})) return has(instruction, {"reduce"});
        if (instruction.opcode == "atom" || instruction.opcode == "red") return true;
        const bool access = instruction.opcode == "ld" || instruction.opcode == "st";
        return access && has(instruction, {"volatile", "relaxed", "acquire", "release", "mmio"});
    });
}

AlignedBytes pack_parameters(const LaunchRequest& request, const Program& program) {
    const auto& declared = program.parameters;
    if (declared.size() != request.parameters.size()) {
        throw SimulatorError(fmt::format("cannot launch kernel '{}': it takes {} parameters, but {} are given",
                                         request.kernel, declared.size(), request.parameters.size()));
    }
    AlignedBytes bytes(program.parameter_bytes);
    std::fill_n(bytes.data(), program.parameter_bytes, std::byte{0});
    for (std::size_t i = 0; i < declared.size(); ++i) {
        const auto given = request.parameters[i];
        if (given.size() != declared[i].bytes) {
            throw SimulatorError(
                fmt::format("cannot launch kernel '{}': parameter {} ('{}') has {} bytes, but {} are given",
                            request.kernel, i, declared[i].name, declared[i].bytes, given.size()));
        }
        std::ranges::copy(given, bytes.data() + declared[i].address);
    }
    return bytes;
}

}  // namespace

struct Simulator::State {
    Options options;
    GlobalMemory memory;
    std::vector<std::shared_ptr<const LoadedModule>> modules;
    std::map<std::pair<std::size_t, std::string>, std::shared_ptr<const Program>, std::less<>> programs;
    std::vector<Finding> findings;
    Statistics statistics;

    explicit State(const Options& chosen) : options(chosen), memory(chosen.memory_bytes) {}

    const LoadedModule& module(ModuleHandle handle) const {
        if (handle.index >= modules.size()) throw SimulatorError("no such module");
        return *modules[handle.index];
    }
    const ptx::Function& kernel(ModuleHandle handle, std::string_view name) const;
    std::shared_ptr<const Program> program(ModuleHandle handle, std::string_view name);
};

const ptx::Function& Simulator::State::kernel(ModuleHandle handle, std::string_view name) const {
    const LoadedModule& loaded = module(handle);
    if (const ptx::Function* found = loaded.ptx.find_kernel(name)) return *found;
    std::vector<std::string_view> names;
    for (const auto& function : loaded.ptx.functions) {
        if (function.entry) names.push_back(function.name);
    }
    throw SimulatorError(fmt::format("module {} has no kernel '{}'; it has: {}", loaded.ptx.path, name,
                                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::shared_ptr<const Program> Simulator::State::program(ModuleHandle handle, std::string_view name) {
    const ptx::Function& function = kernel(handle, name);
    auto& program = programs[{handle.index, std::string(name)}];
    if (!program) program = decode_kernel(modules[handle.index], function);
    return program;
}

Simulator::Simulator(const Options& options) : state_(std::make_unique<State>(options)) {
    if (options.multiprocessors == 0) throw SimulatorError("a device of 0 multiprocessors; it needs at least 1");
}
Simulator::~Simulator() = default;

const Options& Simulator::options() const { return state_->options; }
const Statistics& Simulator::statistics() const { return state_->statistics; }

std::string Simulator::target() const {
    return fmt::format("sm_{}{}", state_->options.architecture, state_->options.specific ? "a" : "");
}

std::uint64_t Simulator::allocate(std::uint64_t bytes, std::string_view label) {
    try {
        return state_->memory.allocate(bytes, std::string(label)).address;
    } catch (const std::bad_alloc&) {
        throw SimulatorError(
            fmt::format("cannot allocate {} bytes for '{}': the host has not enough memory", bytes, label));
    }
}

void Simulator::free(std::uint64_t address) { state_->memory.free(address); }
void Simulator::write(std::uint64_t address, std::span<const std::byte> from) { state_->memory.write(address, from); }
void Simulator::read(std::uint64_t address, std::span<std::byte> to) const { state_->memory.read(address, to); }
void Simulator::poison(std::uint64_t address, std::uint64_t bytes, std::byte pattern) {
    state_->memory.poison(address, bytes, pattern);
}

ModuleHandle Simulator::load(std::string ptx, std::string path) {
    return load(std::make_shared<const ptx::Module>(ptx::parse(std::move(ptx), std::move(path))));
}

ModuleHandle Simulator::load(std::shared_ptr<const ptx::Module> module) {
    auto loaded = std::make_shared<LoadedModule>(std::move(module));
    check_target(loaded->ptx, state_->options, target());
    for (const auto& variable : loaded->ptx.variables) {
        std::uint64_t& address = loaded->addresses.emplace_back(0);
        if (variable.space != ptx::Space::global && variable.space != ptx::Space::constant) continue;
        if (variable.external) {
            throw ptx::PtxError(
                ptx::at(loaded->ptx.path, variable.position,
                        fmt::format("variable '{}' is .extern, and modules are not linked", variable.name)));
        }
        Allocation& allocation = state_->memory.allocate(variable.bytes, std::string(variable.name));
        std::vector<std::byte> bytes = variable.initial;
        bytes.resize(variable.bytes);
        state_->memory.write(allocation.address, bytes);
        allocation.read_only = variable.space == ptx::Space::constant;
        address = allocation.address;
    }
    state_->modules.push_back(std::move(loaded));
    return {state_->modules.size() - 1};
}

std::vector<std::string_view> Simulator::kernels(ModuleHandle module) const {
    std::vector<std::string_view> names;
    for (const auto& function : state_->module(module).ptx.functions) {
        if (function.entry && function.has_body) names.push_back(function.name);
    }
    return names;
}

void Simulator::check(ModuleHandle module, std::string_view kernel) { state_->program(module, kernel); }

bool Simulator::launch(const LaunchRequest& request) {
    check_shape(request, state_->kernel(request.module, request.kernel));
    Grid grid;
    grid.program = state_->program(request.module, request.kernel);
    const Program& program = *grid.program;
    grid.memory = &state_->memory;
    grid.grid = request.grid;
    grid.block = request.block;
    grid.cluster = cluster_of(request, *program.function);
    grid.explicit_cluster = request.cluster != Dim3{} || program.function->required_cluster.has_value();
    grid.parameters = pack_parameters(request, program);
    const std::uint64_t static_end = kSharedBase + program.static_shared_bytes;
    const std::uint64_t dynamic_base = (static_end + program.dynamic_shared_alignment - 1) /
                                       program.dynamic_shared_alignment * program.dynamic_shared_alignment;
    const std::uint64_t shared = dynamic_base + request.dynamic_shared_bytes - kSharedBase;
    if (request.dynamic_shared_bytes != 0 && shared > kMaxSharedBytes) {
        throw SimulatorError(fmt::format(
            "cannot launch kernel '{}': {} bytes of static and {} of dynamic shared memory exceed the limit of {}",
            request.kernel, program.static_shared_bytes, request.dynamic_shared_bytes, kMaxSharedBytes));
    }
    grid.dynamic_shared_bytes = request.dynamic_shared_bytes;
    grid.shared_bytes =
        request.dynamic_shared_bytes == 0 ? program.static_shared_bytes : static_cast<std::uint32_t>(shared);
    grid.seed = state_->options.seed;
    grid.step_limit = state_->options.step_limit;
    grid.number = state_->statistics.launches;
    grid.multiprocessors = state_->options.multiprocessors;

    state_->memory.drop_full_shadows();
    // Clusters that communicate run one after the other, or the host's threads would have a say in the result.
    const unsigned host_threads = ctas_may_communicate(*program.function) ? 1 : state_->options.host_threads;
    GridResult result = run_grid(grid, host_threads, state_->options.finding_limit);
    std::ranges::move(result.findings, std::back_inserter(state_->findings));
    ++state_->statistics.launches;
    state_->statistics.ctas += request.grid.count();
    state_->statistics.warp_instructions += result.warp_instructions;
    state_->statistics.lane_instructions += result.lane_instructions;
    return result.completed;
}

std::vector<Finding> Simulator::take_findings() { return std::exchange(state_->findings, {}); }

}  // namespace block_attention::simulator
