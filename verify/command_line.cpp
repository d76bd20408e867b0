#include "verify/command_line.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "verify/cases/load.h"
#include "verify/io/atomic_file.h"
#include "verify/io/tensor_file.h"
#include "verify/listing.h"
#include "verify/options.h"
#include "verify/ptx_command/command.h"
#include "verify/report/json.h"
#include "verify/report/junit.h"
#include "verify/report/progress.h"
#include "verify/report/table.h"
#include "verify/selection.h"
#include "verify/text.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

/// The files that a run writes at its end. They are opened before it begins, so that a wrong path costs no run.
struct ReportFiles {
    explicit ReportFiles(const Options& options) {
        const auto open = [](const std::optional<std::string>& path) {
            return path ? std::make_unique<AtomicFile>(*path) : nullptr;
        };
        json = open(options.json);
        junit = open(options.junit);
        output = open(options.output);
    }
    std::unique_ptr<AtomicFile> json, junit, output;
};

/// The problems to run: built-in cases and specifications, or the one of an input file.
struct Work {
    std::vector<Case> cases;
    std::string input_name;
    std::optional<Tensors> input;  ///< loaded at once, so that a faulty file is refused before anything runs

    [[nodiscard]] std::size_t size() const { return input ? 1 : cases.size(); }
    [[nodiscard]] const std::string& name(std::size_t i) const { return input ? input_name : cases[i].name; }
};

Work select_work(const Options& options) {
    if (options.input && !options.cases.empty()) {
        throw UsageError("--input and --case exclude each other: an input is the case");
    }
    if (options.block && !options.input) {
        throw UsageError("--block is for --input; a case has its own, as in --case block=32,...");
    }
    if (options.block && *options.block < 1) {
        throw UsageError(fmt::format("--block {} is not a block size: 1 or more", *options.block));
    }
    Work work;
    if (options.input) {
        work.input_name = std::filesystem::path(*options.input).filename().string();
        work.input.emplace(load_tensor_file(*options.input, options.block));
    } else {
        work.cases = select_cases(options.cases, options.seed);
        for (const Case& test_case : work.cases) check_memory(make_problem(test_case));
    }
    if (options.output && work.size() != 1) {
        throw UsageError(
            fmt::format("--output writes the results of one problem, but {} are selected; use --input, or --case "
                        "with one name",
                        counted(static_cast<std::int64_t>(work.size()), "case")));
    }
    return work;
}

/// Pairs of stage and device that can run; throws if there is none.
std::int64_t count_runs(std::span<const Stage* const> stages, std::span<const NamedDevice> devices) {
    std::int64_t pairs = 0;
    for (const Stage* stage : stages) {
        pairs += std::count_if(devices.begin(), devices.end(), [&](const NamedDevice& device) {
            return device.is_host == (stage->run_on_host != nullptr);
        });
    }
    if (pairs > 0) return pairs;
    std::vector<std::string> names;
    for (const NamedDevice& device : devices) names.push_back(device.name);
    throw UsageError(fmt::format(
        "nothing to run: the stage {} runs on {}, but the devices are {}", stages.front()->name,
        stages.front()->run_on_host != nullptr ? "the host only" : "the simulator and GPUs, not on the host",
        fmt::join(names, ", ")));
}

TableStyle make_style(const Work& work, std::span<const Stage* const> stages, std::span<const NamedDevice> devices,
                      bool colour) {
    TableStyle style;
    style.colour = colour;
    for (std::size_t i = 0; i < work.size(); ++i) style.case_width = std::max(style.case_width, work.name(i).size());
    for (const Stage* stage : stages) style.stage_width = std::max(style.stage_width, stage->name.size());
    for (const NamedDevice& device : devices) style.device_width = std::max(style.device_width, device.name.size());
    return style;
}

Schedules schedules_of(const Options& options) {
    return {.first_seed = options.schedule_seed.value_or(options.seed), .count = options.schedules};
}

RunDescription describe_run(const Options& options, std::span<const NamedDevice> devices) {
    RunDescription run{.version = kVersion, .seed = options.seed, .schedules = schedules_of(options), .devices = {}};
    for (const NamedDevice& device : devices) {
        const DeviceProperties& properties = device.device->properties();
        run.devices.push_back({.name = device.name,
                               .description = properties.name,
                               .architecture = properties.architecture,
                               .multiprocessors = properties.multiprocessors});
    }
    return run;
}

void print_heading(std::ostream& out, const Options& options, const DeviceSet& devices) {
    out << fmt::format("verify {}, seed {}{}\n", kVersion, options.seed, words(schedules_of(options), options.seed));
    for (const NamedDevice& device : devices.devices) {
        if (!device.is_host) out << fmt::format("{}: {}\n", device.name, describe(device));
    }
    for (const std::string& note : devices.notes) out << note << "\n";
    out << "\n";
}

/// Runs all problems, printing a line a result as it comes. Fills `outputs` if asked to.
std::vector<Result> run_all(const Options& options, const Work& work, std::span<const Stage* const> stages,
                            const DeviceSet& devices, const Environment& environment, const TableStyle& style,
                            std::vector<NamedTensor>& outputs) {
    constexpr std::int64_t kManyElements = 10'000'000;
    const std::int64_t pairs = count_runs(stages, devices.devices);
    Progress progress(environment.err, environment.err_is_terminal, pairs * static_cast<std::int64_t>(work.size()));
    std::vector<Result> results;
    for (std::size_t i = 0; i < work.size(); ++i) {
        const std::string& name = work.name(i);
        progress.begin(fmt::format("{}: inputs", name), false);
        std::optional<Tensors> generated;
        if (!work.input) generated.emplace(load_case(work.cases[i], options.seed));
        const Tensors& tensors = work.input ? *work.input : *generated;
        const bool large = tensors.footprint(Operand::o).places() > kManyElements;
        const LoadedCase loaded{.name = name, .tensors = &tensors};
        RunHooks hooks;
        hooks.before = [&](std::string_view stage, std::string_view device) {
            progress.begin(fmt::format("{}: {} on {}", name, stage, device), large);
        };
        hooks.after = [&](Result result) {
            progress.end();
            progress.clear();
            environment.out << table_row(style, result) << std::flush;
            results.push_back(std::move(result));
        };
        if (options.output) {
            hooks.output = [&](std::string_view stage, std::string_view device, const Tensors& with_output) {
                outputs.push_back(dense_output(with_output, fmt::format("o.{}.{}", stage, device)));
            };
        }
        run_case(loaded, stages, devices.devices, hooks, schedules_of(options));
    }
    return results;
}

void print_verbose(std::ostream& out, const TableStyle& style, std::span<const Result> results) {
    for (const Result& result : results) {
        if (result.passed()) out << details(style, result) << "\n";
        if (result.refusal) {
            out << fmt::format("{}: {}: not served: {}\n\n", result.case_name, result.stage, *result.refusal);
        }
    }
}

void write_files(const ReportFiles& files, const RunDescription& run, std::span<const Result> results,
                 std::span<const NamedTensor> outputs) {
    if (files.json) {
        write_json(files.json->stream(), run, results);
        files.json->commit();
    }
    if (files.junit) {
        write_junit(files.junit->stream(), results);
        files.junit->commit();
    }
    if (files.output) {
        write_safetensors(files.output->stream(), outputs, {});
        files.output->commit();
    }
}

int exit_code(std::span<const Result> results) {
    const bool any_ran = std::any_of(results.begin(), results.end(), [](const Result& result) { return result.ran(); });
    const bool any_failed = std::any_of(results.begin(), results.end(), failed);
    if (any_failed) return kFailed;
    if (any_ran) return kPassed;
    throw UsageError(results.empty() ? "nothing ran"
                                     : fmt::format("nothing ran: the stage {} does not serve the case {}: {}",
                                                   results.front().stage, results.front().case_name,
                                                   results.front().refusal.value_or("")));
}

int run(const Options& options, const Environment& environment) {
    const Work work = select_work(options);
    const std::vector<const Stage*> stages = select_stages(options.stages, environment.stages);
    const DeviceSet devices = environment.open_devices(
        {.names = options.devices, .architecture = options.architecture, .seed = schedules_of(options).first_seed});
    if (options.list) {
        environment.out << listing(work.cases, stages, devices);
        return kPassed;
    }
    count_runs(stages, devices.devices);
    const ReportFiles files(options);
    const TableStyle style = make_style(work, stages, devices.devices, environment.out_is_coloured);
    print_heading(environment.out, options, devices);
    environment.out << table_header(style);
    std::vector<NamedTensor> outputs;
    const std::vector<Result> results = run_all(options, work, stages, devices, environment, style, outputs);
    environment.out << "\n";
    if (options.verbose) print_verbose(environment.out, style, results);
    environment.out << failures(style, results) << summary(style, results) << std::flush;
    write_files(files, describe_run(options, devices.devices), results, outputs);
    return exit_code(results);
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const Environment& environment) {
    const auto parsed = parse_options(argc, argv, environment.out, environment.err);
    if (const auto* code = std::get_if<ExitCode>(&parsed)) return code->value;
    const auto* ptx = std::get_if<PtxOptions>(&parsed);
    try {
        if (ptx != nullptr) return run_ptx_command(*ptx, environment.out, environment.out_is_coloured);
        return run(std::get<Options>(parsed), environment);
    } catch (const UsageError& error) {
        environment.err << "verify: " << error.what() << "\n";
    } catch (const DeviceError& error) {
        environment.err << "verify: " << error.what() << "\n";
    } catch (const std::bad_alloc&) {
        environment.err << "verify: this machine has too little memory for the "
                        << (ptx != nullptr ? "launch; choose smaller buffers\n"
                                           : "case; choose fewer sequences, heads or tokens\n");
    }
    return kBadUsage;
}

}  // namespace block_attention
