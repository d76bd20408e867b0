#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace block_attention {

/// Seeds of schedules, one behind the other (modulo 2^64).
struct Schedules {
    std::uint64_t first_seed = 1;
    std::uint64_t count = 1;
};

inline constexpr std::uint64_t kMostSchedules = 1'000'000;

/// What one run under one seed left behind. It started from memory as fresh as every other run's.
struct ScheduledRun {
    std::vector<std::vector<std::byte>> outputs;  ///< as many and as large under every seed
    bool faulty = false;                          ///< the run died or found something: its outputs are not compared
};

/// Bytes in which an output differs from the first seed's.
struct ScheduleDifference {
    std::size_t output = 0;      ///< the first output that differs
    std::size_t first_byte = 0;  ///< the first byte there
    std::size_t bytes = 0;       ///< that differ there
};

/// What came of the runs, up to the first seed that stands out.
struct ScheduleOutcome {
    std::uint64_t runs = 0;
    ScheduledRun first;                                 ///< under the first seed
    std::optional<std::uint64_t> seed;                  ///< that stands out: faulty, or different from the first
    std::optional<ScheduleDifference> difference;       ///< if it differs
    std::vector<std::vector<std::byte>> other_outputs;  ///< of the seed that differs

    [[nodiscard]] bool one_result() const { return !seed; }
};

/// Calls `run` with one seed after the other and ends at the first that is faulty or whose outputs differ in any byte
/// from the first seed's.
ScheduleOutcome run_schedules(const Schedules& schedules, const std::function<ScheduledRun(std::uint64_t)>& run);

/// For the heading of a run whose data come from `data_seed`: ", 200 schedules from seed 1", or nothing if there is one
/// schedule and it has the data's seed.
std::string words(const Schedules& schedules, std::uint64_t data_seed);

/// What every report says of the schedules: "schedules: 200, one result", or which seed stands out and how to replay
/// it.
std::string to_string(const Schedules& schedules, const std::optional<std::uint64_t>& seed);

}  // namespace block_attention
