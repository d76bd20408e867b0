#include "naive/naive.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "naive/naive_parameters.h"
#include "naive_module.h"
#include "reference/exp2.h"
#include "reference/tiles.h"

namespace block_attention {
namespace {

constexpr std::int64_t kMaxGridX = std::numeric_limits<std::int32_t>::max();  // CUDA Programming Guide, table of
constexpr std::int64_t kMaxGridY = 65535;                                     // technical specifications
constexpr std::int64_t kWarpSize = 32;

PlanResult plan_naive(const Problem& problem) {
    if (problem.pass != Pass::forward) return Refusal{"naive computes the forward pass only"};
    if (problem.rotary) return Refusal{"naive does not apply a rotary embedding"};
    // A tile is as long as the block or as the longest sequence, but only the block size is known without a look at
    // all.
    const auto* keys = std::find_if(std::begin(kNaiveKeys), std::end(kNaiveKeys),
                                    [&](int most) { return problem.block_size <= most; });
    if (keys == std::end(kNaiveKeys)) {
        return Refusal{fmt::format("naive gives every query row a thread, so a block has at most 1024 tokens, not {}",
                                   problem.block_size)};
    }
    if (problem.heads > kMaxGridY) {
        return Refusal{fmt::format("naive has heads along grid y, which ends at {}, not {}", kMaxGridY, problem.heads)};
    }
    if (problem.head_dim > std::numeric_limits<std::int32_t>::max()) {
        return Refusal{fmt::format("naive counts a row's elements in 32 bits; the head dim is {}", problem.head_dim)};
    }
    const std::int64_t tiles = count_tiles(problem);
    if (tiles > kMaxGridX) {
        return Refusal{fmt::format("naive has tiles along grid x, which ends at {}, not {}", kMaxGridX, tiles)};
    }
    if (tiles == 0 || problem.heads == 0) return Plan{};

    const auto threads = (problem.block_size + kWarpSize - 1) / kWarpSize * kWarpSize;
    const NaiveParameters parameters{.q = problem.q.strides,
                                     .k = problem.k.strides,
                                     .v = problem.v.strides,
                                     .o = problem.o.strides,
                                     .head_dim = static_cast<std::int32_t>(problem.head_dim),
                                     .scale = problem.scale};
    Plan plan;
    plan.tables.push_back(make_table("tiles", list_tiles(problem)));
    plan.launches.push_back(
        {.module = &naive_module(),
         .kernel = fmt::format("naive_{}_{}", name_of(problem.dtype), *keys),
         .grid = {static_cast<std::uint32_t>(tiles), static_cast<std::uint32_t>(problem.heads), 1},
         .block = {static_cast<std::uint32_t>(threads), 1, 1},
         .cluster = {},
         .dynamic_shared_bytes = 0,
         .arguments = {BufferArgument{Operand::q}, BufferArgument{Operand::k}, BufferArgument{Operand::v},
                       BufferArgument{Operand::o}, TableArgument{0}, value_argument(parameters)}});
    return plan;
}

/// fp32 throughout: two chains of FMAs, and the operations of the softmax as the kernel writes them.
Arithmetic naive_arithmetic(const Problem&) {
    const ProductArithmetic chain{.terms_per_step = 1, .step_roundoff = std::ldexp(1.0, -24), .align_roundoff = 0};
    return {.qk = chain,
            .pv = chain,
            .logit_roundings = 1,     // scale * dot
            .exponent_roundings = 3,  // the difference, log2(e) itself, and their product
            .exp2_relative_error = kExp2RelativeError,
            .exp2_absolute_error = std::ldexp(1.0, -126),
            .p_roundoff = 0,
            .sum_of_rounded_p = false,
            .division_roundings = 1};
}

}  // namespace

const Stage& naive_stage() {
    static const Stage kStage{.name = "naive",
                              .summary = "one thread a query row, global memory only, fp32 arithmetic",
                              .plan = plan_naive,
                              .run_on_host = nullptr,
                              .arithmetic = naive_arithmetic};
    return kStage;
}

}  // namespace block_attention
