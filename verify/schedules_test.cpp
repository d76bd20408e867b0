#include "verify/schedules.h"

#include <doctest/doctest.h>

#include <limits>

namespace block_attention {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

TEST_CASE("every seed is run, and equal outputs are one result") {
    std::vector<std::uint64_t> seeds;
    const ScheduleOutcome outcome = run_schedules({.first_seed = 7, .count = 3}, [&](std::uint64_t seed) {
        seeds.push_back(seed);
        return ScheduledRun{.outputs = {bytes_of({1, 2}), {}}};
    });
    CHECK(seeds == std::vector<std::uint64_t>{7, 8, 9});
    CHECK(outcome.one_result());
    CHECK(outcome.runs == 3);
    CHECK(outcome.first.outputs[0] == bytes_of({1, 2}));
}

TEST_CASE("the first seed with another output ends the runs") {
    const ScheduleOutcome outcome = run_schedules({.first_seed = 1, .count = 100}, [](std::uint64_t seed) {
        return ScheduledRun{.outputs = {bytes_of({0}), bytes_of({1, seed < 4 ? 2 : 3, 4, seed < 4 ? 5 : 6})}};
    });
    CHECK_FALSE(outcome.one_result());
    CHECK(outcome.runs == 4);
    CHECK(outcome.seed == 4);
    REQUIRE(outcome.difference);
    CHECK(outcome.difference->output == 1);
    CHECK(outcome.difference->first_byte == 1);
    CHECK(outcome.difference->bytes == 2);
    CHECK(outcome.first.outputs[1] == bytes_of({1, 2, 4, 5}));
    CHECK(outcome.other_outputs[1] == bytes_of({1, 3, 4, 6}));
}

TEST_CASE("a faulty run ends the runs, also the first, and its outputs are not compared") {
    const auto faulty_from = [](std::uint64_t first) {
        return run_schedules({.first_seed = 1, .count = 5}, [&](std::uint64_t seed) {
            return ScheduledRun{.outputs = {bytes_of({static_cast<int>(seed >= first)})}, .faulty = seed >= first};
        });
    };
    CHECK(faulty_from(1).seed == 1);
    CHECK(faulty_from(1).runs == 1);
    CHECK(faulty_from(3).seed == 3);
    CHECK_FALSE(faulty_from(3).difference);
    CHECK(faulty_from(6).one_result());
}

TEST_CASE("seeds go on at 0 behind the largest") {
    std::vector<std::uint64_t> seeds;
    run_schedules({.first_seed = std::numeric_limits<std::uint64_t>::max(), .count = 2}, [&](std::uint64_t seed) {
        seeds.push_back(seed);
        return ScheduledRun{};
    });
    CHECK(seeds.back() == 0);
}

TEST_CASE("reports say how many schedules gave one result, or which stands out") {
    CHECK(to_string({.first_seed = 5, .count = 2000}, std::nullopt) == "schedules: 2,000, one result");
    CHECK(to_string({.first_seed = 5, .count = 200}, 17) ==
          "schedules: seed 17 of 5 to 204 stands out; --schedule-seed 17 replays it");
    CHECK(words({.first_seed = 5, .count = 1}, 5).empty());
    CHECK(words({.first_seed = 5, .count = 1}, 6) == ", 1 schedule from seed 5");
    CHECK(words({.first_seed = 5, .count = 200}, 5) == ", 200 schedules from seed 5");
}

}  // namespace
}  // namespace block_attention
