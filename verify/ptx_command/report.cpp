#include "verify/ptx_command/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "verify/report/finding_json.h"
#include "verify/text.h"

namespace block_attention {
namespace {

using Json = nlohmann::ordered_json;

std::string extents(const Dim3& dim) { return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z); }

Json to_json(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

std::string count_of(std::uint64_t count, std::string_view noun) {
    return counted(static_cast<std::int64_t>(count), noun);
}

/// "within 0.01 + 0.02 * |expected|", "within 0.01", "bit for bit".
std::string criterion(const Expectation& expectation) {
    if (!expectation.tolerance) return "bit for bit";
    const auto [absolute, relative] = *expectation.tolerance;
    if (relative == 0) return fmt::format("within {}", absolute);
    return fmt::format("within {} + {} * |expected|", absolute, relative);
}

std::string agreement_lines(const Expectation& expectation, const Agreement& agreement, const std::string& name) {
    const std::string share = fmt::format("{} of {}", grouped(agreement.wrong),
                                          count_of(static_cast<std::uint64_t>(agreement.elements), "element"));
    std::string text =
        fmt::format("{}: {} {}, {}", name, share, agreement.wrong == 1 ? "differs" : "differ", criterion(expectation));
    if (expectation.tolerance) text += fmt::format("; largest difference {:.3g}", agreement.largest_difference);
    text += "\n";
    if (agreement.wrong > 0) text += fmt::format("  {}\n", agreement.first_wrong);
    return text;
}

std::string outcome(const LaunchResult& result) {
    std::vector<std::string> reasons;
    if (result.died) reasons.emplace_back("the kernel died");
    if (!result.findings.empty()) reasons.push_back(count_of(result.findings.size(), "finding"));
    if (result.difference) reasons.emplace_back("the result depends on the schedule");
    for (const Agreement& agreement : result.agreements) {
        if (agreement.wrong > 0) reasons.push_back(fmt::format("{} wrong", grouped(agreement.wrong)));
    }
    return fmt::format("FAILED: {}", fmt::join(reasons, ", "));
}

}  // namespace

std::string launch_heading(const LaunchDescription& run, const LaunchSpec& spec) {
    std::string text = fmt::format("verify {}, seed {}{}\n", run.version, run.seed, words(run.schedules, run.seed));
    text += fmt::format("{}: {} on the simulated {}, ", run.ptx, spec.kernel->name, to_string(spec.target));
    const bool clusters = spec.cluster != Dim3{};
    text += fmt::format("a grid of {} CTAs of {} threads{}{}\n\n", extents(spec.grid), extents(spec.block),
                        clusters ? fmt::format(" in clusters of {}", extents(spec.cluster)) : "",
                        spec.dynamic_shared_bytes == 0 ? ""
                                                       : fmt::format(", {} of dynamic shared memory",
                                                                     count_of(spec.dynamic_shared_bytes, "byte")));
    return text;
}

std::string launch_report(const LaunchDescription& run, const LaunchSpec& spec, const LaunchResult& result) {
    std::string text;
    for (const Finding& finding : result.findings) text += to_string(finding) + "\n";
    if (run.schedules.count > 1) text += to_string(run.schedules, result.standing_out) + "\n";
    if (result.difference) {
        text += fmt::format(
            "{}: {} from seed {}'s, first {}\n", spec.buffers[result.difference->buffer].name,
            result.difference->bytes == 1
                ? "1 byte differs"
                : fmt::format("{} bytes differ", grouped(static_cast<std::int64_t>(result.difference->bytes))),
            run.schedules.first_seed, result.difference->first);
    }
    for (std::size_t i = 0; i < result.agreements.size(); ++i) {
        const Agreement& agreement = result.agreements[i];
        text += agreement_lines(spec.expectations[i], agreement, spec.buffers[agreement.buffer].name);
    }
    return text;
}

std::string launch_verdict(const LaunchResult& result, bool in_colour) {
    return (result.passed() ? coloured("passed", Colour::green, in_colour)
                            : coloured(outcome(result), Colour::red, in_colour)) +
           "\n";
}

void write_launch_json(std::ostream& stream, const LaunchDescription& run, const LaunchSpec& spec,
                       const LaunchResult& result) {
    Json schedules{{"first_seed", run.schedules.first_seed}, {"count", run.schedules.count}, {"runs", result.runs}};
    if (result.standing_out) schedules["seed_that_stands_out"] = *result.standing_out;
    if (result.difference) {
        schedules["difference"] = {{"buffer", spec.buffers[result.difference->buffer].name},
                                   {"bytes", result.difference->bytes},
                                   {"first", result.difference->first}};
    }
    Json findings = Json::array();
    for (const Finding& finding : result.findings) findings.push_back(to_json(finding));
    Json expectations = Json::array();
    for (std::size_t i = 0; i < result.agreements.size(); ++i) {
        const Agreement& agreement = result.agreements[i];
        Json entry{{"buffer", spec.buffers[agreement.buffer].name},
                   {"elements", agreement.elements},
                   {"wrong", agreement.wrong}};
        if (const auto& tolerance = spec.expectations[i].tolerance) {
            entry["absolute"] = tolerance->absolute;
            entry["relative"] = tolerance->relative;
            entry["largest_difference"] = agreement.largest_difference;
        }
        if (agreement.wrong > 0) entry["first_wrong"] = agreement.first_wrong;
        expectations.push_back(std::move(entry));
    }
    Json outputs = Json::object();
    for (const OutputFile& output : spec.outputs) outputs[spec.buffers[output.buffer].name] = output.path.string();
    const Json report{{"format", 1},
                      {"version", run.version},
                      {"seed", run.seed},
                      {"passed", result.passed()},
                      {"ptx", run.ptx},
                      {"kernel", std::string(spec.kernel->name)},
                      {"target", to_string(spec.target)},
                      {"grid", to_json(spec.grid)},
                      {"block", to_json(spec.block)},
                      {"cluster", to_json(spec.cluster)},
                      {"dynamic_shared_bytes", spec.dynamic_shared_bytes},
                      {"schedules", std::move(schedules)},
                      {"died", result.died},
                      {"findings", std::move(findings)},
                      {"expectations", std::move(expectations)},
                      {"outputs", std::move(outputs)},
                      {"statistics",
                       {{"ctas", result.statistics.ctas},
                        {"warp_instructions", result.statistics.warp_instructions},
                        {"lane_instructions", result.statistics.lane_instructions}}}};
    // Messages may quote bytes of a file that are no UTF-8.
    stream << report.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace block_attention
