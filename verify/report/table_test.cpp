#include "verify/report/table.h"

#include <doctest/doctest.h>

#include "verify/report/sample_results.h"

namespace block_attention {
namespace {

const TableStyle kStyle{.case_width = 10, .stage_width = 6, .device_width = 9};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("rows line up below the header") {
    const auto results = testing::sample_results();
    CHECK(table_header(kStyle) == "case        stage   device          elements   of bound  result\n");
    CHECK(table_row(kStyle, results[0]) ==
          "listing     naive   cuda:0            65,536     3.21 %  passed, same bits as on simulator\n");
    CHECK(
        table_row(kStyle, results[1]) ==
        "listing     naive   simulator         65,536   infinite  FAILED: 1 wrong, 1 finding, guard-zone, 2 of 65,536 "
        "elements differ from cuda:0\n");
    CHECK(table_row(kStyle, results[2]) ==
          "jagged      naive   cuda:0                 -          -  FAILED: did not finish\n");
    CHECK(table_row(kStyle, results[3]) == "block-2048  naive   simulator              -          -  not served\n");
}

TEST_CASE("a problem without elements has no share") {
    Result result = testing::sample_results()[0];
    result.bits.reset();
    result.comparison = {};
    CHECK(table_row(kStyle, result) == "listing     naive   cuda:0                 0          -  passed\n");
}

TEST_CASE("only the outcome is coloured") {
    TableStyle style = kStyle;
    style.colour = true;
    const auto results = testing::sample_results();
    CHECK(contains(table_row(style, results[0]), "3.21 %  \033[32mpassed"));
    CHECK(contains(table_row(style, results[1]), "\033[1;31mFAILED"));
    CHECK(contains(table_row(style, results[3]), "\033[2mnot served\033[0m"));
    for (const Result& result : results) CHECK_FALSE(contains(table_row(kStyle, result), "\033"));
}

TEST_CASE("details name everything that is wrong, and the worst tile's worst element") {
    const std::string text = details(kStyle, testing::sample_results()[1]);
    CHECK(contains(text, "listing: naive on simulator: FAILED"));
    CHECK(contains(text, "naive/naive.cu:41"));
    CHECK(contains(text, "guard-zone: the guard zone of o was written"));
    CHECK(contains(text, "2 of 65,536 elements differ from cuda:0, first o at head 1"));
    CHECK(contains(text, "sequence 0, rows 64 to 127, head 1: infinite of the bound, 1 element wrong"));
    CHECK(contains(text, "row 66, dim 3: computed nan, expected 0.501, bound 0.03"));
    CHECK(details(kStyle, testing::sample_results()[3]).empty());
}

TEST_CASE("schedules are named where they gave one result, and the seed where they didn't") {
    Result result = testing::sample_results()[0];
    result.schedules = testing::one_result();
    CHECK(result.passed());
    CHECK(table_row(kStyle, result) ==
          "listing     naive   cuda:0            65,536     3.21 %  passed, same bits as on simulator; schedules: 200, "
          "one result\n");
    CHECK_FALSE(contains(details(kStyle, result), "stands out"));
    result.schedules = testing::seed_that_differs();
    CHECK_FALSE(result.passed());
    CHECK(table_row(kStyle, result) ==
          "listing     naive   cuda:0            65,536     3.21 %  FAILED: the result depends on the schedule\n");
    CHECK(contains(details(kStyle, result),
                   "  schedules: seed 16 of 9 to 208 stands out; --schedule-seed 16 replays it\n  2 bytes of o differ "
                   "from seed 9's\n"));
}

TEST_CASE("failures come worst first, and only failures") {
    auto results = testing::sample_results();
    Result milder = results[1];
    milder.case_name = "milder";
    milder.comparison.largest_share = 7;
    results.insert(results.begin(), milder);
    const std::string text = failures(kStyle, results);
    CHECK(text.find("listing:") < text.find("jagged:"));  // equally bad: in order
    CHECK(text.find("jagged:") < text.find("milder:"));
    CHECK(text.find("milder:") != std::string::npos);
    CHECK_FALSE(contains(text, "block-2048"));
}

TEST_CASE("the summary counts") {
    CHECK(summary(kStyle, testing::sample_results()) == "4 results: 1 passed, 2 failed, 1 not served\n");
    const auto results = testing::sample_results();
    CHECK(summary(kStyle, std::span(results).first(1)) == "1 result: 1 passed\n");
}

}  // namespace
}  // namespace block_attention
