#include "verify/suggest.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "reference/oracle.h"
#include "verify/cases/builtin.h"
#include "verify/fake_device.h"
#include "verify/selection.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

std::string error_of(const auto& action) {
    try {
        action();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("the distance of two texts is the number of edits") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("naive", "naive") == 0);
    CHECK(edit_distance("nave", "naive") == 1);
    CHECK(edit_distance("niave", "naive") == 1);
    CHECK(edit_distance("ab", "ba") == 1);
    CHECK(edit_distance("abcd", "badc") == 2);
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("near names are suggested, else all") {
    const std::vector<std::string> names{"oracle", "naive", "tiled"};
    CHECK(suggestion("nave", names) == "; did you mean naive?");
    CHECK(suggestion("hopper", names) == "; there are oracle, naive, tiled");
}

TEST_CASE("cases are selected by name, glob and specification, in the order of the words") {
    CHECK(select_cases({}, 1).size() == builtin_cases().size());
    const auto selected = select_cases({"tail-1", "listing*", "tokens=5,name=own"}, 1);
    REQUIRE(selected.size() == 4);
    CHECK(selected[0].name == "tail-1");
    CHECK(selected[1].name == "listing");
    CHECK(selected[2].name == "listing-dim64");
    CHECK(selected[3].name == "own");
}

TEST_CASE("an unknown case or stage is refused with a suggestion") {
    CHECK(error_of([] { select_cases({"listin"}, 1); }) == "there is no case listin; did you mean listing?");
    CHECK(error_of([] { select_cases({"xyz*"}, 1); }).find("there is no case xyz*; there are listing, ") == 0);
    const std::array stages{&oracle_stage(), &testing::fake_stage()};
    CHECK(error_of([&] { select_stages({"oracel"}, stages); }) == "there is no stage oracel; did you mean oracle?");
    CHECK(select_stages({}, stages).size() == 2);
    CHECK(select_stages({"fake", "o*"}, stages) == std::vector<const Stage*>{&oracle_stage(), &testing::fake_stage()});
    CHECK(select_stages({"fa*"}, stages) == std::vector<const Stage*>{&testing::fake_stage()});
}

}  // namespace
}  // namespace block_attention
