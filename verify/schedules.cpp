#include "verify/schedules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "verify/text.h"

namespace block_attention {
namespace {

std::optional<ScheduleDifference> difference_of(const ScheduledRun& first, const ScheduledRun& other) {
    for (std::size_t output = 0; output < first.outputs.size(); ++output) {
        const std::vector<std::byte>& expected = first.outputs[output];
        const std::vector<std::byte>& bytes = other.outputs[output];
        if (expected.empty() || std::memcmp(expected.data(), bytes.data(), expected.size()) == 0) continue;
        ScheduleDifference difference{.output = output};
        const auto found = std::mismatch(expected.begin(), expected.end(), bytes.begin());
        difference.first_byte = static_cast<std::size_t>(found.first - expected.begin());
        for (std::size_t i = difference.first_byte; i < expected.size(); ++i) {
            difference.bytes += expected[i] != bytes[i] ? 1 : 0;
        }
        return difference;
    }
    return std::nullopt;
}

}  // namespace

ScheduleOutcome run_schedules(const Schedules& schedules, const std::function<ScheduledRun(std::uint64_t)>& run) {
    ScheduleOutcome outcome;
    while (outcome.runs < schedules.count) {
        const std::uint64_t seed = schedules.first_seed + outcome.runs;
        ScheduledRun current = run(seed);
        ++outcome.runs;
        const bool is_first = outcome.runs == 1;
        if (!current.faulty && !is_first) outcome.difference = difference_of(outcome.first, current);
        if (current.faulty || outcome.difference) outcome.seed = seed;
        if (outcome.difference) outcome.other_outputs = std::move(current.outputs);
        if (is_first) outcome.first = std::move(current);
        if (outcome.seed) break;
    }
    return outcome;
}

std::string words(const Schedules& schedules, std::uint64_t data_seed) {
    if (schedules.count == 1 && schedules.first_seed == data_seed) return "";
    return fmt::format(", {} from seed {}", counted(static_cast<std::int64_t>(schedules.count), "schedule"),
                       schedules.first_seed);
}

std::string to_string(const Schedules& schedules, const std::optional<std::uint64_t>& seed) {
    const auto count = grouped(static_cast<std::int64_t>(schedules.count));
    if (!seed) return fmt::format("schedules: {}, one result", count);
    return fmt::format("schedules: seed {0} of {1} to {2} stands out; --schedule-seed {0} replays it", *seed,
                       schedules.first_seed, schedules.first_seed + schedules.count - 1);
}

}  // namespace block_attention
