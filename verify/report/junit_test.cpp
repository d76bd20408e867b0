#include "verify/report/junit.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "verify/report/sample_results.h"

namespace block_attention {
namespace {

std::string report(const std::vector<Result>& results = testing::sample_results()) {
    std::ostringstream stream;
    write_junit(stream, results);
    return stream.str();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// The names of elements that were opened and not closed, or closed out of order: empty for well-formed markup.
std::vector<std::string> unbalanced(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t begin = xml.find('<'); begin != std::string::npos; begin = xml.find('<', begin + 1)) {
        const std::size_t end = xml.find('>', begin);
        if (end == std::string::npos || xml.find('<', begin + 1) < end) return {"<"};
        const std::string tag = xml.substr(begin + 1, end - begin - 1);
        if (tag.front() == '?' || tag.back() == '/') continue;
        if (tag.front() != '/') {
            open.push_back(tag.substr(0, tag.find(' ')));
        } else if (open.empty() || open.back() != tag.substr(1)) {
            return {tag};
        } else {
            open.pop_back();
        }
    }
    return open;
}

TEST_CASE("markup is escaped, control characters are replaced") {
    CHECK(escape_xml("a < b && \"c\" > 'd'") == "a &lt; b &amp;&amp; &quot;c&quot; &gt; 'd'");
    CHECK(escape_xml(std::string("\033[1m\0\n", 6)) == "?[1m?\n");
}

TEST_CASE("elements are closed in order, whatever the messages hold") {
    CHECK(unbalanced(report()).empty());
    CHECK(contains(report(), "&lt;behind&gt; &quot;k&quot; &amp; beyond"));
    CHECK(unbalanced("<a><b></a>").size() == 1);
}

TEST_CASE("the suite counts, and each result is a test case") {
    const std::string xml = report();
    CHECK(contains(xml, R"(<testsuite name="verify" tests="4" failures="1" errors="1" skipped="1" time="3.500">)"));
    CHECK(contains(xml, R"(<testcase classname="naive.cuda:0" name="listing" time="1.750"></testcase>)"));
    CHECK(contains(xml, R"(<failure message="listing: naive on simulator: FAILED: 1 wrong)"));
    CHECK(contains(xml, R"(<error message="jagged: naive on cuda:0: FAILED: did not finish">)"));
    CHECK(contains(xml, "the launch failed"));
    CHECK(contains(xml, R"(<skipped message="blocks of more than 1024 tokens"/>)"));
}

TEST_CASE("the number of schedules is a property of a test case, whether it passed or not") {
    auto results = testing::sample_results();
    results[0].schedules = testing::one_result();
    results[1].schedules = testing::seed_that_differs();
    const std::string xml = report(results);
    CHECK(unbalanced(xml).empty());
    constexpr std::string_view kProperty = R"(<properties><property name="schedules" value="200"/></properties>)";
    CHECK(contains(xml, std::string(kProperty) + "</testcase>"));
    CHECK(contains(xml, std::string(kProperty) + "<failure message=\"listing: naive on simulator: FAILED"));
    CHECK(contains(xml, "2 bytes of o differ from seed 9's"));
}

}  // namespace
}  // namespace block_attention
