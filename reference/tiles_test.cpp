#include "reference/tiles.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "reference/test_problem.h"

namespace block_attention {
namespace {

TEST_CASE("uniform sequences are cut from their own first token, with a short tile at the end") {
    const TestProblem test(DType::fp16, 2, 3, 150, 8, 64);
    const std::vector<Tile> expected{{0, 64, 0}, {64, 64, 0}, {128, 22, 0}, {0, 64, 1}, {64, 64, 1}, {128, 22, 1}};
    CHECK(list_tiles(test.problem) == expected);
}

TEST_CASE("jagged sequences: tails, one token, and empty sequences at the start, between and at the end") {
    const TestProblem test(DType::fp16, {0, 0, 65, 65, 66, 130, 130}, 1, 8, 64);
    const std::vector<Tile> expected{{0, 64, 1}, {64, 1, 1}, {65, 1, 3}, {66, 64, 4}};
    CHECK(list_tiles(test.problem) == expected);
}

TEST_CASE("nothing to cut") {
    CHECK(list_tiles(TestProblem(DType::fp16, 0, 2, 64, 8, 64).problem).empty());
    CHECK(list_tiles(TestProblem(DType::fp16, 2, 2, 0, 8, 64).problem).empty());
    CHECK(list_tiles(TestProblem(DType::fp16, {0, 0, 0}, 2, 8, 64).problem).empty());
}

TEST_CASE("tiles cover every token of every sequence exactly once, and are counted right") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::int64_t> offsets{0};
        for (int s = 0; s < 8; ++s) offsets.push_back(offsets.back() + static_cast<std::int64_t>(random() % 40));
        const auto block = static_cast<std::int64_t>(1 + random() % 20);
        const TestProblem test(DType::fp16, offsets, 1, 1, block);
        const auto tiles = list_tiles(test.problem);
        REQUIRE(static_cast<std::int64_t>(tiles.size()) == count_tiles(test.problem));
        std::int64_t next = 0;
        for (const Tile& tile : tiles) {
            REQUIRE(tile.first_row == next);
            REQUIRE(tile.length >= 1);
            REQUIRE(tile.length <= block);
            const auto s = static_cast<std::size_t>(tile.sequence);
            REQUIRE(tile.first_row >= offsets[s]);
            REQUIRE(tile.first_row + tile.length <= offsets[s + 1]);
            REQUIRE((tile.first_row - offsets[s]) % block == 0);
            next += tile.length;
        }
        REQUIRE(next == offsets.back());
    }
}

TEST_CASE("a block as large as can be does not overflow") {
    TestProblem test(DType::fp16, 1, 1, 100, 1, 64);
    test.problem.block_size = std::numeric_limits<std::int32_t>::max();
    CHECK(list_tiles(test.problem) == std::vector<Tile>{{0, 100, 0}});
}

}  // namespace
}  // namespace block_attention
