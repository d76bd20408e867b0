#include "verify/cases/case_spec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "verify/usage_error.h"

namespace block_attention {
namespace {

std::string error_of(std::string_view spec) {
    try {
        parse_case(spec, 1);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("a specification sets every key") {
    const Case parsed = parse_case(
        "name=mine,batch=4,heads=8,tokens=4096,dim=64,block=32,dtype=bf16,layout=bshd,fill=attention,scale=0.5", 1);
    CHECK(parsed.name == "mine");
    CHECK(parsed.batch == 4);
    CHECK(parsed.heads == 8);
    CHECK(parsed.tokens == 4096);
    CHECK(parsed.dim == 64);
    CHECK(parsed.block == 32);
    CHECK(parsed.dtype == DType::bf16);
    CHECK(parsed.layout == Layout::bshd);
    CHECK(parsed.fill == Fill::attention);
    CHECK(parsed.scale == 0.5F);
    CHECK_FALSE(parsed.lengths);
}

TEST_CASE("what is absent has a default") {
    const Case parsed = parse_case("tokens=10", 1);
    CHECK(parsed.name == "tokens=10");
    CHECK(parsed.batch == 1);
    CHECK(parsed.heads == 1);
    CHECK(parsed.dim == 128);
    CHECK(parsed.block == 64);
    CHECK(parsed.dtype == DType::fp16);
    CHECK(parsed.layout == Layout::bhsd);
    CHECK(make_problem(parsed).scale == default_scale(128));
    CHECK(parse_case("lengths=3", 1).layout == Layout::thd);
}

TEST_CASE("lengths: single, counted, ranged") {
    CHECK(parse_case("lengths=5+0+64+130", 1).lengths == std::vector<std::int64_t>{5, 0, 64, 130});
    CHECK(parse_case("lengths=7x3+2", 1).lengths == std::vector<std::int64_t>{7, 7, 7, 2});
    CHECK(parse_case("lengths=7x0", 1).lengths == std::vector<std::int64_t>{});
    const auto drawn = parse_case("lengths=800..2000x1152", 1).lengths.value();
    REQUIRE(drawn.size() == 1152);
    const auto [shortest, longest] = std::minmax_element(drawn.begin(), drawn.end());
    CHECK(*shortest >= 800);
    CHECK(*shortest < 820);
    CHECK(*longest <= 2000);
    CHECK(*longest > 1980);
    CHECK(drawn == parse_case("lengths=800..2000x1152", 1).lengths);
    CHECK(drawn != parse_case("lengths=800..2000x1152", 2).lengths);
}

TEST_CASE("a jagged problem has offsets and rows behind them") {
    const Problem problem = make_problem(parse_case("lengths=5+0+4,trailing=3", 1));
    CHECK(problem.offsets == std::vector<std::int64_t>{0, 5, 5, 9});
    CHECK(problem.sequences == 3);
    CHECK(problem.tokens == 12);
}

TEST_CASE("an error names the key, the value and what is allowed") {
    CHECK(error_of("heads=-1") == "heads=-1 is not an integer of 0 to 2147483647");
    CHECK(error_of("block=0") == "block=0 is not an integer of 1 to 2147483647");
    CHECK(error_of("dim=") == "dim= is not an integer of 1 to 2147483647");
    CHECK(error_of("tokens=12a") == "tokens=12a is not an integer of 0 to 281474976710656");
    CHECK(error_of("dtype=fp8") == "dtype=fp8 is unknown; there are fp16, bf16, fp32");
    CHECK(contains(error_of("layout=bhds"), "layout=bhds is unknown; there are bhsd, bshd, thd"));
    CHECK(contains(error_of("fill=random"), "fill=random is unknown; there are normal, attention"));
    CHECK(contains(error_of("scale=nan"), "scale=nan is not a finite number"));
    CHECK(contains(error_of("scale=1e99"), "scale=1e99 is not a finite number"));
    CHECK(contains(error_of("head=3"), "\"head=3\" in the case \"head=3\" is not key=value"));
    CHECK(contains(error_of("heads=3,"), "is not key=value"));
    CHECK(contains(error_of("heads=3,heads=4"), "heads= is given twice"));
    CHECK(contains(error_of("lengths=5+"), "lengths= is not an integer"));
    CHECK(contains(error_of("lengths=9..5"), "lengths=9..5 descends"));
    CHECK(contains(error_of("lengths=5x-1"), "lengths=-1 is not an integer"));
    CHECK(contains(error_of("lengths=5,batch=2"), "batch= and lengths= exclude each other"));
    CHECK(contains(error_of("lengths=5,tokens=2"), "tokens= and lengths= exclude each other"));
    CHECK(contains(error_of("trailing=2"), "trailing=2 needs lengths="));
    CHECK(contains(error_of("tokens=2,layout=thd"), "layout=thd needs lengths="));
    CHECK(contains(error_of("lengths=2,layout=shared-batch"), "layout=shared-batch excludes lengths="));
    CHECK(contains(error_of("batch=2147483647,tokens=2147483647"), "the limit is 2^48"));
}

TEST_CASE("a case describes its problem") {
    CHECK(parse_case("heads=2", 1).description == "fp16, 1 sequence of 256 tokens, 2 heads, dim 128, block 64");
    CHECK(parse_case("lengths=5+0+64,dim=8", 1).description ==
          "fp16, 3 sequences of 0 to 64 tokens, jagged, 1 head, dim 8, block 64");
    CHECK(parse_case("lengths=1x9", 1).description ==
          "fp16, 9 sequences of 1 token, jagged, 1 head, dim 128, block 64");
    CHECK(parse_case("lengths=1x0", 1).description == "fp16, 0 sequences, 1 head, dim 128, block 64");
}

}  // namespace
}  // namespace block_attention
