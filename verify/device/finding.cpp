#include "verify/device/finding.h"

#include <fmt/format.h>

namespace block_attention {

namespace {

std::string to_string(Dim3 d) { return fmt::format("{},{},{}", d.x, d.y, d.z); }

}  // namespace

std::string to_string(const Finding& finding) {
    const char* severity = finding.severity == Severity::error ? "error" : "warning";
    const std::string callers =
        finding.callers.empty() ? std::string() : fmt::format(" (from {})", fmt::join(finding.callers, ", "));
    return fmt::format("{}:{}{}: {}: {}: {} (kernel {}, CTA {}, thread {}; {} occurrence{})", finding.file,
                       finding.line, callers, severity, finding.rule, finding.message, finding.kernel,
                       to_string(finding.cta), to_string(finding.thread), finding.occurrences,
                       finding.occurrences == 1 ? "" : "s");
}

}  // namespace block_attention
