#include "verify/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "verify/report/finding_json.h"
#include "verify/report/table.h"

namespace block_attention {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    if (std::isfinite(value)) return value;
    if (std::isnan(value)) return "nan";
    return value > 0 ? "inf" : "-inf";
}

Json to_json(const DeviceDescription& device) {
    return {{"name", device.name},
            {"description", device.description},
            {"architecture", device.architecture},
            {"multiprocessors", device.multiprocessors}};
}

Json to_json(const ProblemShape& shape) {
    return {{"dtype", name_of(shape.dtype)},  {"jagged", shape.jagged}, {"sequences", shape.sequences},
            {"tokens", shape.tokens},         {"heads", shape.heads},   {"head_dim", shape.head_dim},
            {"block_size", shape.block_size}, {"tiles", shape.tiles},   {"scale", shape.scale}};
}

Json to_json(const TileComparison& tile) {
    const ElementError& worst = tile.worst;
    return {{"sequence", tile.tile.sequence},
            {"first_row", tile.tile.first_row},
            {"length", tile.tile.length},
            {"head", tile.head},
            {"wrong", tile.wrong},
            {"worst",
             {{"row", worst.row},
              {"dim", worst.dim},
              {"computed", number(worst.computed)},
              {"expected", number(worst.expected)},
              {"bound", number(worst.error)},
              {"share", number(worst.share)}}}};
}

Json to_json(const StorageFault& fault) {
    return {{"rule", fault.rule},
            {"operand", name_of(fault.operand)},
            {"message", fault.message},
            {"occurrences", fault.occurrences}};
}

Json to_json(const BitComparison& bits) {
    return {{"device", bits.device}, {"elements", bits.elements}, {"differing", bits.differing}, {"first", bits.first}};
}

Json to_json(const ScheduleComparison& comparison) {
    Json json{{"first_seed", comparison.schedules.first_seed},
              {"count", comparison.schedules.count},
              {"runs", comparison.runs}};
    if (comparison.seed) json["seed_that_stands_out"] = *comparison.seed;
    if (!comparison.difference.empty()) json["difference"] = comparison.difference;
    return json;
}

template <typename T>
Json list(const std::vector<T>& items) {
    Json array = Json::array();
    for (const T& item : items) array.push_back(to_json(item));
    return array;
}

Json to_json(const Result& result) {
    Json json{{"case", result.case_name},
              {"stage", result.stage},
              {"device", result.device},
              {"outcome", result.refusal   ? "not served"
                          : failed(result) ? "failed"
                                           : "passed"},
              {"problem", to_json(result.shape)}};
    if (result.refusal) {
        json["reason"] = *result.refusal;
        return json;
    }
    if (result.error) json["error"] = *result.error;
    const Comparison& comparison = result.comparison;
    json["elements"] = comparison.elements;
    json["wrong"] = comparison.wrong;
    json["largest_share"] = number(comparison.largest_share);
    json["shares"] = Json::array();
    for (const double share : comparison.shares) json["shares"].push_back(number(share));
    json["worst_tiles"] = list(comparison.tiles);
    json["faults"] = list(result.faults);
    json["findings"] = list(result.findings);
    if (result.bits) json["bits"] = to_json(*result.bits);
    if (result.schedules) json["schedules"] = to_json(*result.schedules);
    json["seconds"] = {
        {"set_up", result.seconds.set_up}, {"run", result.seconds.run}, {"compare", result.seconds.compare}};
    return json;
}

}  // namespace

void write_json(std::ostream& stream, const RunDescription& run, std::span<const Result> results) {
    bool all_passed = !results.empty();
    Json rows = Json::array();
    for (const Result& result : results) {
        all_passed = all_passed && !failed(result);
        rows.push_back(to_json(result));
    }
    const Json report{{"format", 1},
                      {"version", run.version},
                      {"seed", run.seed},
                      {"schedule_seed", run.schedules.first_seed},
                      {"schedules", run.schedules.count},
                      {"passed", all_passed},
                      {"devices", list(run.devices)},
                      {"results", std::move(rows)}};
    // Messages may quote bytes of a file that are no UTF-8.
    stream << report.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace block_attention
