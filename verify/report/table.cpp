#include "verify/report/table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "verify/text.h"

namespace block_attention {
namespace {

std::string outcome(const Result& result) {
    if (result.refusal) return "not served";
    if (result.passed()) {
        const auto& schedules = result.schedules;
        return fmt::format("passed{}{}", result.bits ? fmt::format(", same bits as on {}", result.bits->device) : "",
                           schedules ? fmt::format("; {}", to_string(schedules->schedules, schedules->seed)) : "");
    }
    std::vector<std::string> reasons;
    if (result.error) reasons.emplace_back("did not finish");
    if (result.comparison.wrong > 0) reasons.push_back(fmt::format("{} wrong", grouped(result.comparison.wrong)));
    if (!result.findings.empty()) {
        reasons.push_back(counted(static_cast<std::int64_t>(result.findings.size()), "finding"));
    }
    for (const StorageFault& fault : result.faults) reasons.push_back(fault.rule);
    if (result.bits && result.bits->differing > 0) {
        reasons.push_back(fmt::format("{} of {} differ from {}", grouped(result.bits->differing),
                                      counted(result.bits->elements, "element"), result.bits->device));
    }
    if (result.schedules && !result.schedules->difference.empty()) {
        reasons.emplace_back("the result depends on the schedule");
    }
    return fmt::format("FAILED: {}", fmt::join(reasons, ", "));
}

std::string line(const TableStyle& style, std::string_view test_case, std::string_view stage, std::string_view device,
                 std::string_view elements, std::string_view share, std::string_view result) {
    return fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>13}  {:>9}  {}\n", test_case, style.case_width, stage,
                       style.stage_width, device, style.device_width, elements, share, result);
}

std::string tile_lines(const TileComparison& tile) {
    const ElementError& worst = tile.worst;
    return fmt::format(
        "    sequence {}, rows {} to {}, head {}: {} of the bound{}\n"
        "      row {}, dim {}: computed {:.10g}, expected {:.10g}, bound {:.3g}\n",
        tile.tile.sequence, tile.tile.first_row, tile.tile.first_row + tile.tile.length - 1, tile.head,
        percent(worst.share), tile.wrong > 0 ? fmt::format(", {} wrong", counted(tile.wrong, "element")) : "",
        tile.tile.first_row + worst.row, worst.dim, worst.computed, worst.expected, worst.error);
}

/// Results without a comparison are worse than any share.
double badness(const Result& result) {
    return result.error ? std::numeric_limits<double>::infinity() : result.comparison.largest_share;
}

}  // namespace

std::string table_header(const TableStyle& style) {
    return line(style, "case", "stage", "device", "elements", "of bound", "result");
}

std::string table_row(const TableStyle& style, const Result& result) {
    const bool compared = result.comparison.elements > 0;
    const Colour colour = result.refusal ? Colour::dim : result.passed() ? Colour::green : Colour::red;
    return line(style, result.case_name, result.stage, result.device,
                result.refusal || result.error ? "-" : grouped(result.comparison.elements),
                compared ? percent(result.comparison.largest_share) : "-",
                coloured(outcome(result), colour, style.colour));
}

bool failed(const Result& result) { return result.ran() && !result.passed(); }

std::string details(const TableStyle& style, const Result& result) {
    if (result.refusal) return "";
    std::string text =
        fmt::format("{}: {} on {}: {}\n", result.case_name, result.stage, result.device,
                    coloured(outcome(result), failed(result) ? Colour::red : Colour::green, style.colour));
    if (result.error) text += fmt::format("  {}\n", *result.error);
    for (const Finding& finding : result.findings) text += fmt::format("  {}\n", to_string(finding));
    for (const StorageFault& fault : result.faults) text += fmt::format("  {}: {}\n", fault.rule, fault.message);
    if (result.bits && result.bits->differing > 0) {
        text += fmt::format("  {} of {} differ from {}, first {}\n", grouped(result.bits->differing),
                            counted(result.bits->elements, "element"), result.bits->device, result.bits->first);
    }
    if (const auto& schedules = result.schedules; schedules && schedules->seed) {
        text += fmt::format("  {}\n", to_string(schedules->schedules, schedules->seed));
        if (!schedules->difference.empty()) text += fmt::format("  {}\n", schedules->difference);
    }
    if (!result.comparison.tiles.empty()) text += "  the worst tiles:\n";
    for (const TileComparison& tile : result.comparison.tiles) text += tile_lines(tile);
    return text;
}

std::string failures(const TableStyle& style, std::span<const Result> results) {
    std::vector<const Result*> order;
    for (const Result& result : results) {
        if (failed(result)) order.push_back(&result);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Result* a, const Result* b) { return badness(*a) > badness(*b); });
    std::string text;
    for (const Result* result : order) text += details(style, *result) + "\n";
    return text;
}

std::string summary(const TableStyle& style, std::span<const Result> results) {
    const auto count = [&](auto test) { return std::count_if(results.begin(), results.end(), test); };
    const auto passed = count([](const Result& result) { return result.passed(); });
    const auto wrong = count(failed);
    const auto refused = count([](const Result& result) { return !result.ran(); });
    std::string text =
        fmt::format("{}: {}", counted(static_cast<std::int64_t>(results.size()), "result"),
                    coloured(fmt::format("{} passed", grouped(passed)), Colour::green, style.colour && wrong == 0));
    if (wrong > 0) text += ", " + coloured(fmt::format("{} failed", grouped(wrong)), Colour::red, style.colour);
    if (refused > 0) text += fmt::format(", {} not served", grouped(refused));
    return text + "\n";
}

}  // namespace block_attention
