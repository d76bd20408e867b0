#pragma once
#include <limits>
#include <vector>

#include "verify/result.h"

namespace block_attention::testing {

inline ScheduleComparison one_result() {
    return {.schedules = {.first_seed = 9, .count = 200}, .runs = 200, .seed = {}, .difference = {}};
}

inline ScheduleComparison seed_that_differs() {
    return {.schedules = {.first_seed = 9, .count = 200},
            .runs = 8,
            .seed = 16,
            .difference = "2 bytes of o differ from seed 9's"};
}

/// One result of each kind: passed, failed in every way, died, refused.
inline std::vector<Result> sample_results() {
    Result passed;
    passed.case_name = "listing";
    passed.stage = "naive";
    passed.device = "cuda:0";
    passed.shape = {.dtype = DType::bf16,
                    .sequences = 1,
                    .tokens = 256,
                    .heads = 2,
                    .head_dim = 128,
                    .block_size = 64,
                    .tiles = 4,
                    .scale = 0.125F};
    passed.comparison.elements = 65536;
    passed.comparison.largest_share = 0.0321;
    passed.comparison.shares = {0.01, 0.0321};
    passed.comparison.tiles = {
        {.tile = {.first_row = 64, .length = 64, .sequence = 0},
         .head = 1,
         .worst = {.row = 2, .dim = 3, .computed = 0.5, .expected = 0.501, .error = 0.03, .share = 0.0321}}};
    passed.bits = BitComparison{.device = "simulator", .elements = 65536, .differing = 0, .first = {}};
    passed.seconds = {.set_up = 0.5, .run = 1, .compare = 0.25};

    Result wrong = passed;
    wrong.device = "simulator";
    wrong.comparison.wrong = 1;
    wrong.comparison.largest_share = std::numeric_limits<double>::infinity();
    wrong.comparison.shares = {0.01, std::numeric_limits<double>::infinity()};
    wrong.comparison.tiles[0].wrong = 1;
    wrong.comparison.tiles[0].worst.computed = std::numeric_limits<double>::quiet_NaN();
    wrong.comparison.tiles[0].worst.share = std::numeric_limits<double>::infinity();
    wrong.faults = {{"guard-zone", Operand::o, "the guard zone of o was written", 3}};
    Finding finding;
    finding.rule = "out-of-bounds";
    finding.message = "a load of 2 bytes <behind> \"k\" & beyond";
    finding.kernel = "attention";
    finding.file = "naive/naive.cu";
    finding.line = 41;
    wrong.findings = {finding};
    wrong.bits = BitComparison{.device = "cuda:0", .elements = 65536, .differing = 2, .first = "o at head 1"};

    Result died;
    died.case_name = "jagged";
    died.stage = "naive";
    died.device = "cuda:0";
    died.error = "the launch failed";

    Result refused;
    refused.case_name = "block-2048";
    refused.stage = "naive";
    refused.device = "simulator";
    refused.refusal = "blocks of more than 1024 tokens";
    return {passed, wrong, died, refused};
}

}  // namespace block_attention::testing
