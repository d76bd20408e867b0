#include "verify/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "verify/command_line.h"
#include "verify/devices.h"
#include "verify/schedules.h"

namespace block_attention {
namespace {

constexpr const char* kDescription =
    "Runs every stage of block-diagonal attention on every device of this machine and\n"
    "judges each element of the result by a bound derived from the stage's arithmetic.";

constexpr const char* kPtxExamples = R"(Examples:
  verify ptx kernels.ptx --list
  verify ptx kernels.ptx --launch saxpy.json --schedules 200

docs/programs.md describes what a launch spec holds.

Exit code: 0 if everything passed, 1 on a finding or a difference, 2 on bad usage.)";

constexpr const char* kExamples = R"(Examples:
  verify                                    every built-in case
  verify --list                             cases, stages and devices, and what a stage does not serve
  verify --case 'jagged*' --stage naive     some cases, one stage
  verify --case batch=4,heads=8,tokens=512,dim=128,block=64,dtype=bf16,layout=bshd,fill=attention
  verify --case lengths=800..2000x16,heads=4 --device cuda
  verify --input qkv.safetensors --block 64 --output o.safetensors
  verify --json report.json --junit report.xml
  verify --stage naive --schedules 200
  verify ptx FILE.ptx --launch SPEC.json    any kernel of any PTX file; see verify ptx --help

A case is key=value,...: batch, tokens, or lengths for a jagged batch (terms joined by +: 64, 64x3, 800..2000,
800..2000x1152), trailing, heads, dim, block, dtype, layout, scale, fill, name. --list names layouts and fills.

An input holds q, k, v as [batch, heads, seq, dim], or as [tokens, heads, dim] with offsets (batch + 1 integers);
optionally scale (one number) and block_size (one integer, or a metadata entry). The output holds a tensor
o.STAGE.DEVICE for each result.

Exit code: 0 if everything passed, 1 on a wrong result or a finding, 2 on bad usage.)";

/// What `verify` and `verify ptx` have in common.
void add_seeds(CLI::App& app, std::uint64_t& seed, std::optional<std::uint64_t>& schedule_seed,
               std::uint64_t& schedules) {
    app.add_option("--seed", seed, "Of random data and of the simulator's first schedule")->capture_default_str();
    app.add_option("--schedule-seed", schedule_seed, "Of the simulator's first schedule, if it is not --seed")
        ->type_name("N");
    app.add_option("--schedules", schedules,
                   "Run everything in the simulator under so many schedules, one seed after the other, and report the "
                   "first that finds something or gives another result")
        ->check(CLI::Range(std::uint64_t{1}, kMostSchedules))
        ->type_name("N")
        ->capture_default_str();
}

CLI::App& add_ptx(CLI::App& app, PtxOptions& options) {
    CLI::App& ptx = *app.add_subcommand("ptx", "Runs a kernel of any PTX file in the simulator");
    ptx.footer(kPtxExamples);
    ptx.add_option("file", options.file, "PTX of nvcc, of another compiler, or written by hand")
        ->required()
        ->type_name("FILE.ptx");
    ptx.add_flag("--list", options.list, "List the kernels with their parameters and what they fix of a launch");
    ptx.add_option("--launch", options.launch, "The launch: kernel, grid, block, buffers, arguments")
        ->type_name("SPEC.json");
    add_seeds(ptx, options.seed, options.schedule_seed, options.schedules);
    ptx.add_option("--arch,--architecture", options.architecture,
                   "The GPU that the simulator is, such as sm_90a; else what the spec says, else the file's .target")
        ->type_name("NAME");
    ptx.add_option("--json", options.json, "Write a report")->type_name("FILE");
    return ptx;
}

}  // namespace

std::variant<Options, PtxOptions, ExitCode> parse_options(int argc, const char* const* argv, std::ostream& out,
                                                          std::ostream& err) {
    Options options;
    CLI::App app{kDescription, "verify"};
    app.footer(kExamples);
    app.set_version_flag("--version", kVersion);
    const std::string anywhere = "NAME|GLOB|SPEC";
    app.add_option("--case", options.cases, "A built-in case, or a case of your own; may be repeated")
        ->type_name(anywhere)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--stage", options.stages, "A stage; may be repeated")
        ->type_name("NAME|GLOB")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--device", options.devices, "host, simulator, cuda, cuda:N or all; may be repeated")
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_seeds(app, options.seed, options.schedule_seed, options.schedules);
    app.add_option("--arch", options.architecture, "The GPU that the simulator is")
        ->check(CLI::IsMember(simulated_architectures()))
        ->capture_default_str();
    auto* input = app.add_option("--input", options.input, "Your own q, k and v instead of a case")
                      ->type_name("FILE.safetensors");
    app.add_option("--block", options.block, "The input's block size; before what the file says, else 64")
        ->type_name("N");
    app.add_option("--output", options.output, "Write the results of one case or input")->type_name("FILE.safetensors");
    app.add_option("--json", options.json, "Write a report with the share of every tile")->type_name("FILE");
    app.add_option("--junit", options.junit, "Write a report for continuous integration")->type_name("FILE");
    app.add_flag("--list", options.list, "List cases, stages and devices, run nothing")->excludes(input);
    app.add_flag("--verbose", options.verbose,
                 "Show the worst tiles of passed results and why a stage does not serve a case");
    PtxOptions ptx_options;
    const std::vector<CLI::Option*> own = app.get_options();
    const CLI::App& ptx = add_ptx(app, ptx_options);
    try {
        app.parse(argc, argv);
        const auto misplaced =
            std::find_if(own.begin(), own.end(), [](const auto* option) { return !option->empty(); });
        if (ptx.parsed() && misplaced != own.end()) {
            throw CLI::ValidationError((*misplaced)->get_name(),
                                       "does not go before ptx; the options of ptx follow it");
        }
    } catch (const CLI::ParseError& error) {
        return ExitCode{app.exit(error, out, err) == 0 ? 0 : kBadUsage};
    }
    if (ptx.parsed()) return ptx_options;
    return options;
}

}  // namespace block_attention
