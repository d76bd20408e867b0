#include "verify/ptx_command/command.h"

#include <fmt/core.h>

#include <memory>
#include <utility>
#include <vector>

#include "verify/command_line.h"
#include "verify/io/atomic_file.h"
#include "verify/io/npy.h"
#include "verify/io/text_file.h"
#include "verify/ptx_command/launch_spec.h"
#include "verify/ptx_command/listing.h"
#include "verify/ptx_command/report.h"
#include "verify/ptx_command/run.h"
#include "verify/simulator/ptx/parse.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

std::shared_ptr<const simulator::ptx::Module> read_module(const std::string& path) {
    try {
        return std::make_shared<const simulator::ptx::Module>(simulator::ptx::parse(read_text_file(path), path));
    } catch (const simulator::ptx::PtxError& error) {
        throw UsageError(error.what());
    }
}

/// The files that a run writes at its end, opened before it begins, so that a wrong path costs no run.
struct OutputFiles {
    OutputFiles(const LaunchSpec& spec, const std::optional<std::string>& json_path) {
        for (const OutputFile& output : spec.outputs) buffers.push_back(std::make_unique<AtomicFile>(output.path));
        if (json_path) json = std::make_unique<AtomicFile>(*json_path);
    }
    std::vector<std::unique_ptr<AtomicFile>> buffers;
    std::unique_ptr<AtomicFile> json;
};

void write_buffers(const LaunchSpec& spec, const LaunchResult& result, const OutputFiles& files, std::ostream& out) {
    for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
        const std::size_t buffer = spec.outputs[i].buffer;
        const ArraySpec& array = spec.buffers[buffer].array;
        write_npy(files.buffers[i]->stream(), array.type, array.shape, result.buffers[buffer]);
        files.buffers[i]->commit();
        out << fmt::format("{}: written to {}\n", spec.buffers[buffer].name, spec.outputs[i].path.string());
    }
}

}  // namespace

int run_ptx_command(const PtxOptions& options, std::ostream& out, bool coloured) {
    if (options.list == options.launch.has_value()) {
        throw UsageError("verify ptx FILE takes one of --list and --launch SPEC.json");
    }
    const auto module = read_module(options.file);
    if (options.list) {
        out << list_kernels(*module) << std::flush;
        return kPassed;
    }
    const LaunchSpec spec = read_launch_spec(*options.launch, *module, options.architecture);
    const LaunchDescription run{
        .version = kVersion,
        .ptx = options.file,
        .seed = options.seed,
        .schedules = {.first_seed = options.schedule_seed.value_or(options.seed), .count = options.schedules}};
    check_launch(spec, module);
    const OutputFiles files(spec, options.json);
    out << launch_heading(run, spec) << std::flush;
    const LaunchResult result = run_launch(spec, module, options.seed, run.schedules);
    out << launch_report(run, spec, result) << std::flush;
    write_buffers(spec, result, files, out);
    if (files.json) {
        write_launch_json(files.json->stream(), run, spec, result);
        files.json->commit();
    }
    out << launch_verdict(result, coloured) << std::flush;
    return result.passed() ? kPassed : kFailed;
}

}  // namespace block_attention
