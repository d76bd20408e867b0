#include "verify/listing.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "verify/runner.h"
#include "verify/tensors.h"
#include "verify/text.h"

namespace block_attention {
namespace {

struct Line {
    std::string name;
    std::string text;
};

/// Names in one column, texts in the next.
std::string section(std::string_view title, const std::vector<Line>& lines) {
    std::size_t width = 0;
    for (const Line& line : lines) width = std::max(width, line.name.size());
    std::string text = fmt::format("{}\n", title);
    for (const Line& line : lines) text += fmt::format("  {:<{}}  {}\n", line.name, width, line.text);
    return text;
}

/// The cases that a stage refuses, by reason.
std::map<std::string, std::vector<std::string>> refusals(const Stage& stage, const std::vector<Case>& cases) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const Case& test_case : cases) {
        const Tensors tensors(make_problem(test_case), shift_of(test_case.layout));
        if (const auto reason = refusal_of(stage, tensors.problem())) by_reason[*reason].push_back(test_case.name);
    }
    return by_reason;
}

}  // namespace

std::string describe(const NamedDevice& device) {
    const DeviceProperties& properties = device.device->properties();
    std::string_view text = properties.name;
    if (text.starts_with(device.name + " ")) text.remove_prefix(device.name.size() + 1);
    if (properties.multiprocessors == 0) return std::string(text);
    return fmt::format("{}, {}", text, counted(properties.multiprocessors, "multiprocessor"));
}

std::string listing(const std::vector<Case>& cases, std::span<const Stage* const> stages, const DeviceSet& devices) {
    std::vector<Line> lines(cases.size());
    std::transform(cases.begin(), cases.end(), lines.begin(), [](const Case& test_case) {
        return Line{test_case.name, test_case.description};
    });
    std::string text = section("Cases (--case)", lines);

    lines.clear();
    for (const Stage* stage : stages) {
        lines.push_back({std::string(stage->name), std::string(stage->summary)});
        for (const auto& [reason, names] : refusals(*stage, cases)) {
            lines.push_back({"", fmt::format("does not serve {}: {}", fmt::join(names, ", "), reason)});
        }
    }
    text += "\n";
    text += section("Stages (--stage)", lines);

    lines.clear();
    for (const NamedDevice& device : devices.devices) lines.push_back({device.name, describe(device)});
    text += "\n";
    text += section("Devices (--device)", lines);
    for (const std::string& note : devices.notes) text += fmt::format("  {}\n", note);

    lines.clear();
    for (const LayoutFacts& facts : layouts()) lines.push_back({std::string(facts.name), std::string(facts.summary)});
    text += "\n";
    text += section("Layouts (--case layout=...)", lines);
    lines.clear();
    for (const FillFacts& facts : fills()) lines.push_back({std::string(facts.name), std::string(facts.summary)});
    text += "\n";
    text += section("Fills (--case fill=...)", lines);
    return text;
}

}  // namespace block_attention
