#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "verify/simulator/conformance/forms.h"
#include "verify/simulator/conformance/summary.h"

namespace block_attention::conformance {

namespace {

constexpr std::string_view kRecordAgain = "; run conformance_record on a machine with an H200 to record h200.txt anew";

ResultsFile h200() {
    std::ifstream stream(BLOCK_ATTENTION_CONFORMANCE_RESULTS);
    REQUIRE_MESSAGE(stream.is_open(), "cannot read " BLOCK_ATTENTION_CONFORMANCE_RESULTS);
    return read_results(stream);
}

TEST_CASE("h200.txt is about the forms and tuples of this program") {
    const auto candidates = all_forms();
    std::set<std::string_view> names;
    for (const auto& form : candidates) {
        CHECK_MESSAGE(names.insert(form.name).second, form.name << " is there twice");
        CHECK_MESSAGE(form.name.find(' ') == std::string::npos, form.name << " has a space");
        CHECK(form.operands.size() <= 4);
        CHECK(form.results.size() <= 4);
        CHECK(!form.results.empty());
    }
    const ResultsFile file = h200();
    CHECK(file.device == "NVIDIA H200");
    for (const auto& recorded : file.hashes)
        CHECK_MESSAGE(names.contains(recorded.first), recorded.first << " is no form" << kRecordAgain);
    CHECK_MESSAGE(file.candidates == candidates.size(), "the list of forms has changed" << kRecordAgain);
    CHECK_MESSAGE(file.list_hash == hash_of(candidates, TupleTable(candidates)),
                  "forms, their kernels or their tuples have changed" << kRecordAgain);
}

TEST_CASE("every instruction form computes what the H200 computes or is refused for a known reason") {
    const auto candidates = all_forms();
    const Comparison comparison(candidates, h200());
    for (const auto& fault : comparison.faults()) FAIL_CHECK(fault);
    // docs/conformance.md shows these tables.
    fmt::print("{}\n{}", comparison.group_table(), comparison.refusal_table());
}

}  // namespace

}  // namespace block_attention::conformance
