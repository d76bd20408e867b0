#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verify/compare.h"
#include "verify/device/finding.h"
#include "verify/schedules.h"
#include "verify/storage_check.h"

namespace block_attention {

/// Whether a stage's output has the same bits as on another device.
struct BitComparison {
    std::string device;         ///< the other one
    std::int64_t elements = 0;  ///< compared
    std::int64_t differing = 0;
    std::string first;  ///< the first that differs, with both bit patterns in hexadecimal
};

/// What came of a stage's runs under several schedules of the simulator.
struct ScheduleComparison {
    Schedules schedules;
    std::uint64_t runs = 0;             ///< until the first seed that stood out
    std::optional<std::uint64_t> seed;  ///< that stood out: the findings and faults are its own, or its bits differ
    std::string difference;             ///< from the first seed's output, if there is one
};

struct Seconds {
    double set_up = 0;   ///< upload and poison
    double run = 0;      ///< from the first launch to the end of the last: includes loading the module
    double compare = 0;  ///< download, checks, comparison with the oracle
};

/// A problem's sizes, without its tensors.
struct ProblemShape {
    DType dtype = DType::fp16;
    bool jagged = false;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0;  ///< uniform: per sequence; jagged: of the whole batch
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t block_size = 0;
    std::int64_t tiles = 0;
    float scale = 0;
};

ProblemShape shape_of(const Problem& problem);

/// What came of one stage on one device for one case.
struct Result {
    std::string case_name;
    std::string stage;
    std::string device;
    ProblemShape shape;
    std::optional<std::string> refusal;  ///< why the stage doesn't serve the case; nothing else is set then
    std::optional<std::string> error;    ///< why the run ended early; there is no comparison then
    Comparison comparison;
    std::vector<StorageFault> faults;
    std::vector<Finding> findings;
    std::optional<BitComparison> bits;
    std::optional<ScheduleComparison> schedules;  ///< if there was more than one
    Seconds seconds;

    [[nodiscard]] bool ran() const { return !refusal; }
    [[nodiscard]] bool passed() const {
        return ran() && !error && comparison.passed() && faults.empty() && findings.empty() &&
               (!bits || bits->differing == 0) && (!schedules || !schedules->seed);
    }
};

}  // namespace block_attention
