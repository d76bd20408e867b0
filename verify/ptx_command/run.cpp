#include "verify/ptx_command/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "verify/ptx_command/element.h"
#include "verify/simulator/ptx/parse.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

/// Streaming multiprocessors of an H200 and a B200.
std::uint32_t multiprocessors(int architecture) { return architecture >= 100 ? 148 : 132; }

simulator::Options simulator_options(const Target& target, std::uint64_t seed) {
    simulator::Options options;
    options.architecture = target.architecture;
    options.specific = target.suffix == 'a';
    options.multiprocessors = multiprocessors(target.architecture);
    options.seed = seed;
    return options;
}

/// One launch on a simulated GPU that has run nothing else.
class FreshRun {
  public:
    FreshRun(const LaunchSpec& spec, const std::shared_ptr<const simulator::ptx::Module>& module, std::uint64_t seed)
        : spec_(spec), simulator_(simulator_options(spec.target, seed)), module_(simulator_.load(module)) {}

    void check() { simulator_.check(module_, spec_.kernel->name); }

    void allocate(const std::vector<std::vector<std::byte>>& contents) {
        for (std::size_t i = 0; i < spec_.buffers.size(); ++i) {
            const BufferSpec& buffer = spec_.buffers[i];
            addresses_.push_back(simulator_.allocate(buffer.array.bytes(), buffer.name));
            simulator_.write(addresses_.back(), contents[i]);
        }
    }

    bool launch() {
        std::vector<std::vector<std::byte>> parameters;
        for (std::size_t i = 0; i < spec_.arguments.size(); ++i) {
            parameters.emplace_back(spec_.kernel->parameters[i].bytes);
            encode(spec_.arguments[i], addresses_, parameters.back());
        }
        simulator::LaunchRequest request;
        request.module = module_;
        request.kernel = spec_.kernel->name;
        request.grid = spec_.grid;
        request.block = spec_.block;
        request.cluster = spec_.cluster;
        request.dynamic_shared_bytes = spec_.dynamic_shared_bytes;
        for (const auto& parameter : parameters) request.parameters.emplace_back(parameter);
        return simulator_.launch(request);
    }

    [[nodiscard]] std::vector<std::byte> read(std::size_t buffer) const {
        std::vector<std::byte> bytes(spec_.buffers[buffer].array.bytes());
        simulator_.read(addresses_[buffer], bytes);
        return bytes;
    }

    [[nodiscard]] simulator::Simulator& simulator() { return simulator_; }

  private:
    const LaunchSpec& spec_;
    simulator::Simulator simulator_;
    simulator::ModuleHandle module_;
    std::vector<std::uint64_t> addresses_;
};

/// Runs a call of the simulator; what it refuses becomes a UsageError.
template <typename Call>
auto translate(Call call) {
    try {
        return call();
    } catch (const simulator::SimulatorError& error) {
        throw UsageError(error.what());
    } catch (const simulator::ptx::PtxError& error) {
        throw UsageError(error.what());
    }
}

/// Source files in or below the current folder are named relative to it.
void shorten_paths(std::vector<Finding>& findings) {
    const std::string prefix = std::filesystem::current_path().string() + "/";
    for (Finding& finding : findings) {
        if (finding.file.starts_with(prefix)) finding.file.erase(0, prefix.size());
    }
}

/// The buffers whose bytes must not depend on the schedule.
std::vector<std::size_t> compared_buffers(const LaunchSpec& spec) {
    std::vector<std::size_t> buffers;
    for (const OutputFile& output : spec.outputs) buffers.push_back(output.buffer);
    for (const Expectation& expectation : spec.expectations) buffers.push_back(expectation.buffer);
    if (buffers.empty()) {
        for (std::size_t i = 0; i < spec.buffers.size(); ++i) buffers.push_back(i);
    }
    std::sort(buffers.begin(), buffers.end());
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    return buffers;
}

std::vector<std::vector<std::byte>> make_contents(const LaunchSpec& spec, std::uint64_t seed) {
    std::vector<std::vector<std::byte>> contents;
    for (std::size_t i = 0; i < spec.buffers.size(); ++i) {
        const ArraySpec& array = spec.buffers[i].array;
        contents.push_back(array.content.kind == Content::Kind::poison ? std::vector<std::byte>{}
                                                                       : make_content(array, seed, i));
    }
    return contents;
}

BufferDifference describe(const ScheduleOutcome& outcome, const std::vector<std::size_t>& compared,
                          const LaunchSpec& spec) {
    const ScheduleDifference& found = *outcome.difference;
    const std::size_t number = compared[found.output];
    const BufferSpec& buffer = spec.buffers[number];
    const std::size_t size = size_of(buffer.array.type);
    const std::size_t element = found.first_byte / size;
    return {
        .buffer = number,
        .bytes = found.bytes,
        .first = fmt::format("{}: {} instead of {}", element_name(buffer, static_cast<std::int64_t>(element)),
                             bits_of(buffer.array.type, outcome.other_outputs[found.output].data() + element * size),
                             bits_of(buffer.array.type, outcome.first.outputs[found.output].data() + element * size))};
}

}  // namespace

bool LaunchResult::passed() const {
    return !standing_out && !died && std::all_of(agreements.begin(), agreements.end(), [](const Agreement& agreement) {
        return agreement.wrong == 0;
    });
}

void check_launch(const LaunchSpec& spec, const std::shared_ptr<const simulator::ptx::Module>& module) {
    translate([&] { FreshRun(spec, module, 0).check(); });
}

LaunchResult run_launch(const LaunchSpec& spec, const std::shared_ptr<const simulator::ptx::Module>& module,
                        std::uint64_t data_seed, const Schedules& schedules) {
    const std::vector<std::size_t> compared = compared_buffers(spec);
    const std::vector<std::vector<std::byte>> contents = make_contents(spec, data_seed);
    LaunchResult result;
    ScheduleOutcome outcome = run_schedules(schedules, [&](std::uint64_t seed) {
        return translate([&] {
            FreshRun run(spec, module, seed);
            run.allocate(contents);
            result.died = !run.launch();
            result.findings = run.simulator().take_findings();
            shorten_paths(result.findings);
            if (seed == schedules.first_seed) result.statistics = run.simulator().statistics();
            ScheduledRun left;
            left.faulty = result.died || !result.findings.empty();
            for (const std::size_t buffer : compared) left.outputs.push_back(run.read(buffer));
            return left;
        });
    });
    result.runs = outcome.runs;
    result.standing_out = outcome.seed;
    if (outcome.difference) result.difference = describe(outcome, compared, spec);
    result.buffers.resize(spec.buffers.size());
    for (std::size_t i = 0; i < compared.size(); ++i) {
        result.buffers[compared[i]] = std::move(outcome.first.outputs[i]);
    }
    const bool first_died = result.died && result.runs == 1;
    for (const Expectation& expectation : spec.expectations) {
        if (first_died) break;
        const auto expected = make_content(expectation.array, data_seed, expectation.buffer);
        result.agreements.push_back(
            compare(expectation, spec.buffers[expectation.buffer], result.buffers[expectation.buffer], expected));
    }
    return result;
}

}  // namespace block_attention
