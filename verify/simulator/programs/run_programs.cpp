// Runs the programs on a GPU or on the simulator, compares every result with Eigen's, and prints checksums as JSON:
// what h200_results.json was made with. --fault does one of them wrong, and says what happened.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verify/device/cuda_device.h"
#include "verify/simulator/programs/faults.h"
#include "verify/simulator/programs/product.h"
#include "verify/simulator/programs/programs.h"

namespace block_attention::programs {
namespace {

struct Options {
    bool simulate = false;
    std::uint64_t seed = 1;
    std::vector<std::string> names;
    std::string fault;
    bool small = false;
    bool list_faults = false;
};

std::unique_ptr<Device> open_device(const Options& options, const Program& program) {
    if (options.simulate) return open_simulator(program, options.seed);
    std::string why_not;
    auto device = open_cuda_device(0, why_not);
    if (!device) throw DeviceError(why_not);
    return device;
}

/// Prints a fault's consequence. The module outlives the device, which knows it by its address.
void run_fault(const Options& options, const Program& program, const Fault& fault) {
    const std::string ptx = edited_ptx(program.module().ptx, program.name, fault.edits);
    const KernelModule edited{program.module().name, program.module().source, ptx, {}};
    Settings settings = program.settings;
    if (fault.change) fault.change(settings);
    const Product product = make_product(program, program.shapes.front(), Input::integers);
    Plan plan = program.plan(product.shape, settings);
    if (!fault.edits.empty()) plan.launches.front().module = &edited;
    const auto device = open_device(options, program);
    const Outcome outcome = run_product(*device, plan, product);
    for (const Finding& finding : outcome.findings) fmt::print("{}\n", to_string(finding));
    if (!outcome.death.empty()) {
        fmt::print("{}: {}: {}\n", program.name, fault.name, outcome.death);
    } else {
        const auto mismatch = find_mismatch(product, outcome.c);
        fmt::print("{}: {}: {}\n", program.name, fault.name, mismatch ? "wrong: " + *mismatch : "right");
    }
}

/// Whether every result was right. Prints them.
bool run_right(const Options& options, const std::vector<const Program*>& programs) {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    bool right = true;
    for (const Program* program : programs) {
        const auto device = open_device(options, *program);
        for (const Shape& shape : program->shapes) {
            for (const Input input : {Input::integers, Input::normal}) {
                if (options.small && (input == Input::normal || &shape != &program->shapes.front())) continue;
                const Product product = make_product(*program, shape, input);
                const Outcome outcome = run_product(*device, program->plan(shape, program->settings), product);
                if (!outcome.death.empty()) throw DeviceError(outcome.death);
                for (const Finding& finding : outcome.findings) fmt::print(stderr, "{}\n", to_string(finding));
                const auto mismatch = find_mismatch(product, outcome.c);
                if (mismatch) fmt::print(stderr, "{}, {}: {}\n", program->name, name_of(input), *mismatch);
                right = right && !mismatch && outcome.findings.empty();
                results.push_back({{"program", program->name},
                                   {"input", name_of(input)},
                                   {"m", shape.m},
                                   {"n", shape.n},
                                   {"k", shape.k},
                                   {"checksum", fmt::format("{:016x}", checksum(outcome.c))}});
            }
        }
    }
    fmt::print("{}\n", results.dump(1));
    return right;
}

int run(const Options& options) {
    std::vector<const Program*> programs;
    for (const std::string& name : options.names) programs.push_back(&program_named(name));
    if (options.list_faults) {
        for (const Program* program : programs) {
            for (const Fault& fault : faults_of(*program)) fmt::print("{}\n", fault.name);
        }
        return 0;
    }
    if (options.fault.empty()) return run_right(options, programs) ? 0 : 1;
    for (const Program* program : programs) {
        for (const Fault& fault : faults_of(*program)) {
            if (fault.name == options.fault) run_fault(options, *program, fault);
        }
    }
    return 0;
}

}  // namespace
}  // namespace block_attention::programs

int main(int argc, char** argv) {
    using namespace block_attention::programs;
    Options options;
    CLI::App app{"Runs the simulator's own programs"};
    app.add_flag("--simulate", options.simulate, "on the simulator; without it, on GPU 0");
    app.add_option("--seed", options.seed, "of the simulator's schedule");
    app.add_flag("--small", options.small, "one shape and input a program");
    app.add_option("--fault", options.fault, "do this one wrong");
    app.add_flag("--list-faults", options.list_faults, "print the faults that can be done");
    app.add_option("programs", options.names, "which ones")->required();
    CLI11_PARSE(app, argc, argv);
    try {
        return run(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    }
}
