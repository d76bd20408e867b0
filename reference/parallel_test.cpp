#include "reference/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace block_attention {
namespace {

TEST_CASE("every index is visited once") {
    std::vector<std::atomic<int>> visits(1000);
    parallel_for(1000, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
    for (const auto& count : visits) CHECK(count == 1);
    parallel_for(0, [](std::int64_t) { FAIL("no index to visit"); });
}

TEST_CASE("an exception reaches the caller and ends the loop") {
    std::atomic<int> calls{0};
    CHECK_THROWS_WITH_AS(parallel_for(1'000'000,
                                      [&](std::int64_t i) {
                                          ++calls;
                                          if (i == 3) throw std::runtime_error("tile 3");
                                      }),
                         "tile 3", std::runtime_error);
    CHECK(calls < 1'000'000);
}

}  // namespace
}  // namespace block_attention
