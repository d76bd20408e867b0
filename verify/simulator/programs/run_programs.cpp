// Runs the programs on a GPU or on the simulator, compares every result with Eigen's, and prints checksums as JSON:
// what h200_results.json was made with. --fault does one of them wrong, and says what happened.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
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
    std::uint64_t schedules = 1;
    std::vector<std::string> names;
    std::string fault;
    bool small = false;
    bool list_faults = false;
};

std::unique_ptr<Device> open_device(const Options& options, const Program& program, std::uint64_t seed) {
    if (options.simulate) return open_simulator(program, seed);
    std::string why_not;
    auto device = open_cuda_device(0, why_not);
    if (!device) throw DeviceError(why_not);
    return device;
}

/// The result if it is right, under every schedule the same; else nothing, after saying what is wrong with it.
std::vector<std::byte> run_right(const Options& options, const Program& program, const Product& product) {
    const Plan plan = program.plan(product.shape, program.settings);
    std::vector<std::byte> first;
    for (std::uint64_t seed = options.seed; seed < options.seed + options.schedules; ++seed) {
        const auto device = open_device(options, program, seed);
        const Outcome outcome = run_product(*device, plan, product);
        std::vector<std::string> faults;
        for (const Finding& finding : outcome.findings) faults.push_back(to_string(finding));
        if (!outcome.death.empty()) {
            faults.push_back(outcome.death);
        } else if (const auto mismatch = find_mismatch(product, outcome.c)) {
            faults.push_back(*mismatch);
        } else if (seed != options.seed && outcome.c != first) {
            faults.emplace_back("another result than before");
        }
        for (const std::string& fault : faults) fmt::print(stderr, "{}, seed {}: {}\n", program.name, seed, fault);
        if (!faults.empty()) return {};
        first = outcome.c;
    }
    return first;
}

/// Whether every result was right. Prints them.
bool run_all(const Options& options, const std::vector<const Program*>& programs) {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    bool right = true;
    for (const Program* program : programs) {
        for (const Shape& shape : program->shapes) {
            for (const Input input : {Input::integers, Input::normal}) {
                if (options.small && (input == Input::normal || &shape != &program->shapes.front())) continue;
                const auto c = run_right(options, *program, make_product(*program, shape, input));
                right = right && !c.empty();
                if (c.empty()) continue;
                results.push_back({{"program", program->name},
                                   {"input", name_of(input)},
                                   {"m", shape.m},
                                   {"n", shape.n},
                                   {"k", shape.k},
                                   {"checksum", fmt::format("{:016x}", checksum(c))}});
            }
        }
    }
    fmt::print("{}\n", results.dump(1));
    return right;
}

/// Prints a fault's consequence.
void run_fault(const Options& options, const Program& program) {
    const auto faults = faults_of(program);
    const auto fault = std::ranges::find(faults, options.fault, &Fault::name);
    if (fault == faults.end()) {
        throw std::invalid_argument(
            fmt::format("{} has no fault '{}'; --list-faults prints them", program.name, options.fault));
    }
    Settings settings = program.settings;
    if (fault->change) fault->change(settings);
    const Product product = make_product(program, program.shapes.front(), Input::integers);
    Plan plan = program.plan(product.shape, settings);
    // The device knows the module by its address, so the module is there first.
    const std::string ptx = edited_ptx(program.module().ptx, program.name, fault->edits);
    const KernelModule edited{program.module().name, program.module().source, ptx, {}};
    if (!fault->edits.empty()) plan.launches.front().module = &edited;
    const auto device = open_device(options, program, options.seed);
    const Outcome outcome = run_product(*device, plan, product);
    for (const Finding& finding : outcome.findings) fmt::print("{}\n", to_string(finding));
    std::string seen = outcome.death;
    if (seen.empty()) {
        const auto mismatch = find_mismatch(product, outcome.c);
        seen = mismatch ? "wrong: " + *mismatch : "right";
    }
    fmt::print("{}: {}: {}\n", program.name, fault->name, seen);
}

int run(int argc, char** argv) {
    Options options;
    CLI::App app{"Runs the simulator's own programs"};
    auto* const simulate = app.add_flag("--simulate", options.simulate, "on the simulator; without it, on GPU 0");
    app.add_option("--seed", options.seed, "of the simulator's first schedule")->needs(simulate);
    app.add_option("--schedules", options.schedules, "how many to run, which must give one result")
        ->check(CLI::PositiveNumber)
        ->needs(simulate);
    app.add_flag("--small", options.small, "one shape and input a program");
    app.add_option("--fault", options.fault, "do this one wrong");
    app.add_flag("--list-faults", options.list_faults, "print the faults that can be done");
    app.add_option("programs", options.names, "which ones")->required();
    CLI11_PARSE(app, argc, argv);

    std::vector<const Program*> programs;
    for (const std::string& name : options.names) programs.push_back(&program_named(name));
    if (options.list_faults) {
        for (const Program* program : programs) {
            for (const Fault& fault : faults_of(*program)) fmt::print("{}\n", fault.name);
        }
        return 0;
    }
    if (options.fault.empty()) return run_all(options, programs) ? 0 : 1;
    for (const Program* program : programs) run_fault(options, *program);
    return 0;
}

}  // namespace
}  // namespace block_attention::programs

int main(int argc, char** argv) {
    try {
        return block_attention::programs::run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "run_programs: " << error.what() << "\n";
    }
    return 2;
}
