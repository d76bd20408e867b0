#include "verify/simulator/programs/programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "blackwell_gemm_module.h"
#include "blackwell_gemm_tmem_a_module.h"
#include "blackwell_gemm_warp_specialized_module.h"
#include "hopper_gemm_cluster_module.h"
#include "hopper_gemm_module.h"
#include "verify/simulator/programs/blackwell_gemm.h"
#include "verify/simulator/programs/blackwell_gemm_tmem_a.h"
#include "verify/simulator/programs/blackwell_gemm_warp_specialized.h"
#include "verify/simulator/programs/hopper_gemm.h"
#include "verify/simulator/programs/kernel_settings.h"

namespace block_attention::programs {
namespace {

using simulator::InstructionDescriptor;
using simulator::Major;

// A persistent kernel wants as many CTAs as fit the GPU; here each of a few shall have several tiles.
constexpr std::uint32_t kPersistentCtas = 2;

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// A box of `rows` rows of 128 bytes of a row-major matrix.
TensorMapArgument map_of(Operand operand, DType dtype, std::uint32_t matrix_rows, std::uint32_t matrix_columns,
                         std::uint32_t rows, Swizzle swizzle) {
    const auto bytes = static_cast<std::uint32_t>(size_of(dtype));
    return {.operand = operand,
            .dtype = dtype,
            .dims = {matrix_columns, matrix_rows},
            .byte_strides = {std::uint64_t{matrix_columns} * bytes},
            .box = {128 / bytes, rows},
            .swizzle = swizzle};
}

KernelSettings kernel_settings(const Program& program, const Settings& settings) {
    const bool hopper = program.architecture == 90;
    const auto encode = hopper ? simulator::encode_wgmma_descriptor : simulator::encode_tcgen05_descriptor;
    return {.a_descriptor = encode(settings.a),
            .b_descriptor = encode(settings.b),
            .instruction_descriptor = hopper ? 0 : simulator::encode_instruction_descriptor(settings.instruction),
            .expect_bytes = settings.expect_bytes,
            .full_parity = settings.full_parity,
            .empty_parity = settings.empty_parity,
            .accumulator_full_parity = settings.accumulator_full_parity,
            .accumulator_empty_parity = settings.accumulator_empty_parity};
}

Launch launch_of(const Program& program, Dim3 grid, std::uint32_t threads, std::size_t shared_bytes) {
    return {.module = &program.module(),
            .kernel = std::string(program.name),
            .grid = grid,
            .block = {threads, 1, 1},
            .cluster = {},
            .dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes),
            .arguments = {}};
}

/// The three maps that all programs have but the one with A from Tensor Memory.
template <typename G>
std::vector<Argument> maps_of(const Program& program, const Shape& shape, const Settings& settings,
                              std::uint32_t store_rows) {
    return {map_of(kA, program.factors, shape.m, shape.k, G::kTileM, settings.a_swizzle),
            map_of(kB, program.factors, shape.k, shape.n, G::kTileK, settings.b_swizzle),
            map_of(kC, program.sums, shape.m, shape.n, store_rows, settings.c_swizzle)};
}

template <std::uint32_t kClusterSize>
Plan plan_hopper(const Program& program, const Shape& shape, const Settings& settings) {
    using G = HopperGemm;
    const std::uint32_t clusters = divide_up(divide_up(shape.m, G::kTileM), kClusterSize);
    Launch launch =
        launch_of(program, {clusters * kClusterSize, divide_up(shape.n, G::kTileN), 1}, G::kThreads, sizeof(G::Shared));
    launch.cluster = {kClusterSize, 1, 1};
    launch.arguments = maps_of<G>(program, shape, settings, G::kTileM / G::kConsumers);
    launch.arguments.emplace_back(value_argument(kernel_settings(program, settings)));
    launch.arguments.emplace_back(value_argument(divide_up(shape.k, G::kTileK)));
    return {.tables = {}, .launches = {launch}};
}

template <std::uint32_t kRows>
Plan plan_blackwell(const Program& program, const Shape& shape, const Settings& settings) {
    using G = BlackwellGemm<kRows>;
    Launch launch = launch_of(program, {divide_up(shape.m, G::kTileM), divide_up(shape.n, G::kTileN), 1}, G::kThreads,
                              sizeof(typename G::Shared));
    launch.arguments = maps_of<G>(program, shape, settings, G::kWarpRows);
    launch.arguments.emplace_back(value_argument(kernel_settings(program, settings)));
    launch.arguments.emplace_back(value_argument(divide_up(shape.k, G::kTileK)));
    return {.tables = {}, .launches = {launch}};
}

Plan plan_blackwell_tmem_a(const Program& program, const Shape& shape, const Settings& settings) {
    using G = BlackwellGemmTmemA;
    Launch launch = launch_of(program, {divide_up(shape.m, G::kTileM), divide_up(shape.n, G::kTileN), 1}, G::kThreads,
                              sizeof(G::Shared));
    launch.arguments = {BufferArgument{kA},
                        map_of(kB, program.factors, shape.k, shape.n, G::kTileK, settings.b_swizzle),
                        BufferArgument{kC}, value_argument(kernel_settings(program, settings)),
                        value_argument(GemmShape{shape.m, shape.n, shape.k})};
    return {.tables = {}, .launches = {launch}};
}

Plan plan_blackwell_warp_specialized(const Program& program, const Shape& shape, const Settings& settings) {
    using G = BlackwellGemmWarpSpecialized;
    const TileGrid tiles{divide_up(shape.m, G::kTileM), divide_up(shape.n, G::kTileN)};
    Launch launch = launch_of(program, {std::min(tiles.rows * tiles.columns, kPersistentCtas), 1, 1}, G::kThreads,
                              sizeof(G::Shared));
    launch.arguments = maps_of<G>(program, shape, settings, G::kTileM / G::kEpilogueWarps);
    launch.arguments.emplace_back(value_argument(kernel_settings(program, settings)));
    launch.arguments.emplace_back(value_argument(tiles));
    launch.arguments.emplace_back(value_argument(divide_up(shape.k, G::kTileK)));
    return {.tables = {}, .launches = {launch}};
}

Settings hopper_settings() {
    Settings settings;
    settings.expect_bytes = HopperGemm::kBytesA + HopperGemm::kBytesB;
    return settings;
}

/// `m` rows a product, and as many bytes a stage.
Settings blackwell_settings(std::uint32_t m, InstructionDescriptor::Multiplicand type, std::uint32_t expect_bytes) {
    Settings settings;
    settings.instruction = {.m = m, .n = 128, .a = type, .b = type, .major_a = Major::k, .major_b = Major::mn};
    settings.expect_bytes = expect_bytes;
    return settings;
}

std::vector<Program> make_programs() {
    using Type = InstructionDescriptor::Multiplicand;
    using Specialized = BlackwellGemmWarpSpecialized;
    const std::vector<Shape> shapes{{256, 256, 640}, {300, 168, 328}};
    return {
        {.name = "hopper_gemm",
         .summary = "TMA, a ring of four stages, wgmma, TMA store",
         .architecture = 90,
         .module = hopper_gemm_module,
         .factors = DType::bf16,
         .sums = DType::fp32,
         .settings = hopper_settings(),
         .shapes = shapes,
         .make_plan = plan_hopper<1>},
        {.name = "hopper_gemm_cluster",
         .summary = "the same in clusters of two that multicast B",
         .architecture = 90,
         .module = hopper_gemm_cluster_module,
         .factors = DType::bf16,
         .sums = DType::fp32,
         .settings = hopper_settings(),
         .shapes = shapes,
         .make_plan = plan_hopper<HopperGemm::kClusterSize>},
        {.name = "blackwell_gemm_m64",
         .summary = "TMA, tcgen05.mma of 64 rows, Tensor Memory, TMA store",
         .architecture = 100,
         .module = blackwell_gemm_module,
         .factors = DType::fp16,
         .sums = DType::fp32,
         .settings = blackwell_settings(64, Type::f16, BlackwellGemm<64>::kBytesA + BlackwellGemm<64>::kBytesB),
         .shapes = shapes,
         .make_plan = plan_blackwell<64>},
        {.name = "blackwell_gemm_m128",
         .summary = "TMA, tcgen05.mma of 128 rows, Tensor Memory, TMA store",
         .architecture = 100,
         .module = blackwell_gemm_module,
         .factors = DType::fp16,
         .sums = DType::fp32,
         .settings = blackwell_settings(128, Type::f16, BlackwellGemm<128>::kBytesA + BlackwellGemm<128>::kBytesB),
         .shapes = shapes,
         .make_plan = plan_blackwell<128>},
        {.name = "blackwell_gemm_tmem_a",
         .summary = "A from Tensor Memory, C by plain stores",
         .architecture = 100,
         .module = blackwell_gemm_tmem_a_module,
         .factors = DType::bf16,
         .sums = DType::bf16,
         .settings = blackwell_settings(128, Type::bf16, BlackwellGemmTmemA::kBytesB),
         .shapes = shapes,
         .make_plan = plan_blackwell_tmem_a},
        {.name = "blackwell_gemm_warp_specialized",
         .summary = "persistent, with two accumulators: a tile's epilogue overlaps the next tile's products",
         .architecture = 100,
         .module = blackwell_gemm_warp_specialized_module,
         .factors = DType::bf16,
         .sums = DType::fp32,
         .settings = blackwell_settings(128, Type::bf16, Specialized::kBytesA + Specialized::kBytesB),
         .shapes = {{512, 256, 192}, {600, 168, 200}},
         .make_plan = plan_blackwell_warp_specialized},
    };
}

}  // namespace

Plan Program::plan(const Shape& shape, const Settings& with) const {
    constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();  // coordinates of tensor copies
    constexpr std::uint32_t kChunk = 8;                                        // elements in 16 bytes
    if (shape.m == 0 || shape.m > kMost || shape.n == 0 || shape.n > kMost || shape.n % kChunk != 0 || shape.k == 0 ||
        shape.k > kMost || shape.k % kChunk != 0) {
        throw std::invalid_argument(fmt::format(
            "{} multiplies m x k by k x n with m, n and k in 1..{}, n and k multiples of 8; not m = {}, n = "
            "{}, k = {}",
            name, kMost, shape.m, shape.n, shape.k));
    }
    return make_plan(*this, shape, with);
}

std::span<const Program> all_programs() {
    static const std::vector<Program> kPrograms = make_programs();
    return kPrograms;
}

const Program& program_named(std::string_view name) {
    const auto programs = all_programs();
    const auto found = std::ranges::find(programs, name, &Program::name);
    if (found != programs.end()) return *found;
    std::vector<std::string_view> names;
    for (const Program& program : programs) names.push_back(program.name);
    throw std::invalid_argument(fmt::format("no program '{}'; there are: {}", name, fmt::join(names, ", ")));
}

}  // namespace block_attention::programs
