#include "verify/device/finding.h"

#include <doctest/doctest.h>

namespace block_attention {
namespace {

TEST_CASE("a finding reads like a compiler's message") {
    Finding finding{.severity = Severity::error,
                    .rule = "out-of-bounds",
                    .message = "a load of 4 bytes",
                    .kernel = "k",
                    .file = "naive/naive.cu",
                    .line = 41,
                    .instruction = "ld.global.f32 %f1, [%rd1]",
                    .ptx_line = 7,
                    .cta = {1, 2, 0},
                    .thread = {3, 0, 0},
                    .occurrences = 5};
    CHECK(to_string(finding) ==
          "naive/naive.cu:41: error: out-of-bounds: a load of 4 bytes (kernel k, CTA 1,2,0, thread 3,0,0; 5 "
          "occurrences)");
    finding.callers = {"naive/tile.cuh:7", "naive/naive.cu:50"};
    CHECK(to_string(finding).starts_with("naive/naive.cu:41 (from naive/tile.cuh:7, naive/naive.cu:50): error: "));
    finding.callers.clear();
    finding.severity = Severity::warning;
    finding.occurrences = 1;
    CHECK(to_string(finding).find("41: warning: ") != std::string::npos);
    CHECK(to_string(finding).ends_with("thread 3,0,0; 1 occurrence)"));
}

}  // namespace
}  // namespace block_attention
