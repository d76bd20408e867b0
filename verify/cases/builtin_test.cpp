#include "verify/cases/builtin.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "reference/tiles.h"
#include "verify/cases/load.h"

namespace block_attention {
namespace {

bool any(const auto& test) { return std::any_of(builtin_cases().begin(), builtin_cases().end(), test); }

TEST_CASE("the first case is the published listing's problem") {
    const Case& listing = builtin_cases().front();
    CHECK(listing.name == "listing");
    CHECK(describe(make_problem(listing)) == "fp16, 1 sequence of 256 tokens, 2 heads, dim 128, block 64");
    CHECK(listing.layout == Layout::bhsd);
}

TEST_CASE("names are unique, and no name looks like a specification or a glob") {
    std::set<std::string> names;
    for (const Case& test_case : builtin_cases()) {
        CHECK(names.insert(test_case.name).second);
        CHECK(test_case.name.find_first_of("=*?[], ") == std::string::npos);
        CHECK_FALSE(test_case.description.empty());
    }
}

TEST_CASE("the set covers every type, layout and fill, both usual head dims, and the edges of a batch") {
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        for (const std::int64_t dim : {64, 128}) {
            CHECK(any([&](const Case& c) { return c.dtype == dtype && c.dim == dim; }));
        }
    }
    for (const LayoutFacts& facts : layouts()) CHECK(any([&](const Case& c) { return c.layout == facts.layout; }));
    for (const FillFacts& facts : fills()) CHECK(any([&](const Case& c) { return c.fill == facts.fill; }));
    CHECK(any([](const Case& c) { return c.batch == 0; }));
    CHECK(any([](const Case& c) { return !c.lengths && c.batch > 0 && c.tokens == 0; }));
    CHECK(any([](const Case& c) { return c.trailing > 0; }));
    CHECK(any([](const Case& c) { return c.lengths && std::count(c.lengths->begin(), c.lengths->end(), 0) > 0; }));
    CHECK(any([](const Case& c) { return c.block == 1024; }));
}

TEST_CASE("the simulator can afford the set") {
    double products = 0;
    for (const Case& test_case : builtin_cases()) {
        const Problem problem = make_problem(test_case);
        for (const Tile& tile : list_tiles(problem)) {
            products +=
                static_cast<double>(tile.length) * tile.length * static_cast<double>(problem.heads * problem.head_dim);
        }
    }
    CHECK(products < 4e7);
}

TEST_CASE("every case loads into a valid problem") {
    for (const Case& test_case : builtin_cases()) {
        CAPTURE(test_case.name);
        const Tensors tensors = load_case(test_case, 1);
        CHECK_FALSE(validate(tensors.problem()));
    }
}

}  // namespace
}  // namespace block_attention
