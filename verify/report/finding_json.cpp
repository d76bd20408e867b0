#include "verify/report/finding_json.h"

#include <nlohmann/json.hpp>

namespace block_attention {
namespace {

nlohmann::ordered_json triple(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

}  // namespace

nlohmann::ordered_json to_json(const Finding& finding) {
    return {{"severity", finding.severity == Severity::error ? "error" : "warning"},
            {"rule", finding.rule},
            {"message", finding.message},
            {"kernel", finding.kernel},
            {"file", finding.file},
            {"line", finding.line},
            {"callers", finding.callers},
            {"instruction", finding.instruction},
            {"ptx_line", finding.ptx_line},
            {"cta", triple(finding.cta)},
            {"thread", triple(finding.thread)},
            {"occurrences", finding.occurrences}};
}

}  // namespace block_attention
