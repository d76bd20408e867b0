#include "optimized/blackwell_tile/blackwell_tile.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "blackwell_tile_module.h"
#include "reference/exp2.h"
#include "reference/tiles.h"

namespace block_attention {
namespace {

constexpr std::int64_t kMaxGridX = std::numeric_limits<std::int32_t>::max();  // CUDA Programming Guide, table of
constexpr std::int64_t kMaxGridY = 65535;                                     // technical specifications
constexpr std::int64_t kMapUnit = 16;  // bytes: strides and addresses of a tensor map (cuTensorMapEncodeTiled)
constexpr std::int64_t kMaxMapStride = std::int64_t{1} << 40;
constexpr std::int64_t kMaxMapExtent = std::int64_t{1} << 32;

/// Why TMA cannot walk an operand, or nothing.
std::optional<std::string> unfit_for_tma(const Problem& problem, Operand operand) {
    const TensorView& view = problem.view(operand);
    if (view.strides.dim != 1) {
        return fmt::format("a row of {} must be contiguous for TMA; its elements are {} apart", name_of(operand),
                           view.strides.dim);
    }
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view.data));
    if (address % kMapUnit != 0) return fmt::format("{} is not aligned to 16 bytes, which TMA needs", name_of(operand));
    for (const Axis axis : {Axis::sequence, Axis::head, Axis::token}) {
        const std::int64_t bytes = view.strides[axis] * size_of(view.dtype);
        if (bytes % kMapUnit != 0 || bytes >= kMaxMapStride) {
            return fmt::format("a stride of {} is {} bytes; TMA needs a multiple of 16 below 2^40", name_of(operand),
                               bytes);
        }
    }
    return std::nullopt;
}

/// Rows and keys of the tensor core's tile: blocks of up to 64 or 128 tokens.
std::int64_t rows_for(const Problem& problem) { return problem.block_size <= 64 ? 64 : 128; }

/// A box is as many rows of one head, and 64 columns: the span of the 128-byte swizzle.
TensorMapArgument map_of(const Problem& problem, Operand operand) {
    const Strides& strides = problem.view(operand).strides;
    const auto extents = problem.extents(operand);
    const auto extent = [&](Axis axis) { return static_cast<std::uint64_t>(extents[static_cast<std::size_t>(axis)]); };
    const auto bytes = [&](Axis axis) {
        return static_cast<std::uint64_t>(strides[axis]) * static_cast<std::uint64_t>(size_of(problem.dtype));
    };
    return {.operand = operand,
            .byte_offset = 0,
            .dtype = problem.dtype,
            .dims = {extent(Axis::dim), extent(Axis::token), extent(Axis::head), extent(Axis::sequence)},
            .byte_strides = {bytes(Axis::token), bytes(Axis::head), bytes(Axis::sequence)},
            .box = {64, static_cast<std::uint32_t>(rows_for(problem)), 1, 1},
            .swizzle = Swizzle::b128};
}

template <int kRows, int kDim>
std::uint32_t shared_bytes() {
    return sizeof(typename BlackwellTileLayout<kRows, kDim>::Shared);
}

PlanResult plan(const Problem& problem) {
    if (problem.pass != Pass::forward) return Refusal{"blackwell_tile computes the forward pass only"};
    if (problem.rotary) return Refusal{"blackwell_tile does not apply a rotary embedding"};
    if (problem.dtype == DType::fp32) return Refusal{"blackwell_tile multiplies fp16 or bf16, not fp32"};
    if (problem.head_dim != 64 && problem.head_dim != 128) {
        return Refusal{fmt::format("blackwell_tile has head dims 64 and 128, not {}", problem.head_dim)};
    }
    if (problem.block_size > 128) {
        return Refusal{
            fmt::format("blackwell_tile keeps a tile's scores in 128 lanes, so a block has at most 128 tokens, "
                        "not {}",
                        problem.block_size)};
    }
    if (problem.heads > kMaxGridY) {
        return Refusal{
            fmt::format("blackwell_tile has heads along grid y, which ends at {}, not {}", kMaxGridY, problem.heads)};
    }
    const std::int64_t tiles = count_tiles(problem);
    if (tiles > kMaxGridX) {
        return Refusal{
            fmt::format("blackwell_tile has tiles along grid x, which ends at {}, not {}", kMaxGridX, tiles)};
    }
    if (problem.tokens > kMaxMapExtent / 2) {  // coordinates have a sign
        return Refusal{fmt::format("blackwell_tile counts tokens in 31 bits, and {} are more", problem.tokens)};
    }
    if (tiles == 0 || problem.heads == 0) return Plan{};
    for (const Operand operand : {Operand::q, Operand::k, Operand::v, Operand::o}) {
        if (auto reason = unfit_for_tma(problem, operand)) return Refusal{"blackwell_tile: " + *reason};
    }

    const std::int64_t rows = rows_for(problem);
    const bool wide = problem.head_dim == 128;
    const BlackwellTileParameters parameters{.o = problem.o.strides, .scale = problem.scale};
    Plan result;
    result.tables.push_back(make_table("tiles", list_tiles(problem)));
    result.launches.push_back(
        {.module = &blackwell_tile_module(),
         .kernel = fmt::format("blackwell_tile_{}_{}_{}", name_of(problem.dtype), rows, problem.head_dim),
         .grid = {static_cast<std::uint32_t>(tiles), static_cast<std::uint32_t>(problem.heads), 1},
         .block = {128, 1, 1},
         .cluster = {},
         .dynamic_shared_bytes = rows == 64 ? (wide ? shared_bytes<64, 128>() : shared_bytes<64, 64>())
                                            : (wide ? shared_bytes<128, 128>() : shared_bytes<128, 64>()),
         .arguments = {map_of(problem, Operand::q), map_of(problem, Operand::k), map_of(problem, Operand::v),
                       map_of(problem, Operand::o), BufferArgument{Operand::o}, TableArgument{0},
                       value_argument(parameters)}});
    return result;
}

/// The tensor core truncates each step's sum to fp32 after aligning its terms at 25 bits (hardware model of
/// verify/simulator/engines/tensor_core_plain.h); P is rounded to 16 bits, its sum is taken before that.
Arithmetic arithmetic(const Problem& problem) {
    const bool fp16 = problem.dtype == DType::fp16;
    const ProductArithmetic tensor_core{.terms_per_step = 16,
                                        .step_roundoff = std::ldexp(1.0, -23),
                                        .align_roundoff = std::ldexp(1.0, -25),
                                        .smallest_normal = std::ldexp(1.0, fp16 ? -14 : -126)};
    return {.qk = tensor_core,
            .pv = tensor_core,
            .logit_roundings = 1,     // scale * s
            .exponent_roundings = 3,  // the difference, log2(e) itself, and their product
            .exp2_relative_error = kExp2RelativeError,
            .exp2_absolute_error = std::ldexp(1.0, -126),
            .p_roundoff = std::ldexp(1.0, fp16 ? -11 : -8),
            .p_underflow = std::ldexp(1.0, fp16 ? -25 : -134),
            .sum_of_rounded_p = false,
            .division_roundings = 1};
}

}  // namespace

const Stage& blackwell_tile_stage() {
    static const Stage kStage{.name = "blackwell_tile",
                              .summary = "one tile a CTA: TMA, tcgen05.mma, Tensor Memory",
                              .plan = plan,
                              .run_on_host = nullptr,
                              .arithmetic = arithmetic};
    return kStage;
}

}  // namespace block_attention
