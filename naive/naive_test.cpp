#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "naive/naive.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <variant>

#include "naive/naive_parameters.h"
#include "naive_module.h"
#include "reference/test_problem.h"
#include "reference/tiles.h"

namespace block_attention {
namespace {

Plan plan_of(const Problem& problem) { return std::get<Plan>(naive_stage().plan(problem)); }

std::string reason_of(const Problem& problem) { return std::get<Refusal>(naive_stage().plan(problem)).reason; }

TEST_CASE("one CTA a tile and head, one thread a row") {
    const TestProblem test(DType::bf16, 2, 3, 150, 80, 64);
    const Plan plan = plan_of(test.problem);
    REQUIRE(plan.launches.size() == 1);
    const Launch& launch = plan.launches[0];
    CHECK(launch.kernel == "naive_bf16_64");
    CHECK(launch.module == &naive_module());
    CHECK(launch.grid == Dim3{6, 3, 1});
    CHECK(launch.block == Dim3{64, 1, 1});
    CHECK(launch.dynamic_shared_bytes == 0);
    REQUIRE(launch.arguments.size() == 6);
    CHECK(std::get<BufferArgument>(launch.arguments[3]).operand == Operand::o);

    REQUIRE(plan.tables.size() == 1);
    const auto tiles = list_tiles(test.problem);
    REQUIRE(plan.tables[0].bytes.size() == tiles.size() * sizeof(Tile));
    CHECK(std::memcmp(plan.tables[0].bytes.data(), tiles.data(), plan.tables[0].bytes.size()) == 0);

    NaiveParameters parameters{};
    const auto& value = std::get<ValueArgument>(launch.arguments[5]);
    REQUIRE(value.bytes.size() == sizeof parameters);
    std::memcpy(&parameters, value.bytes.data(), sizeof parameters);
    CHECK(parameters.k == test.problem.k.strides);
    CHECK(parameters.head_dim == 80);
    CHECK(parameters.scale == test.problem.scale);
}

TEST_CASE("the score array fits the block, and every such kernel exists") {
    for (const auto& [block, keys, threads] :
         {std::tuple{1, "64", 32U}, std::tuple{64, "64", 64U}, std::tuple{65, "256", 96U}, std::tuple{256, "256", 256U},
          std::tuple{257, "1024", 288U}, std::tuple{1024, "1024", 1024U}}) {
        for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
            const Plan plan = plan_of(TestProblem(dtype, 1, 1, 10, 8, block).problem);
            const std::string kernel = "naive_" + std::string(name_of(dtype)) + "_" + keys;
            CHECK(plan.launches[0].kernel == kernel);
            CHECK(plan.launches[0].block.x == threads);
            CHECK(naive_module().ptx.find(".entry " + kernel + "(") != std::string_view::npos);
        }
    }
}

TEST_CASE("a problem without a tile launches nothing") {
    CHECK(plan_of(TestProblem(DType::fp16, 0, 2, 64, 8, 64).problem).launches.empty());
    CHECK(plan_of(TestProblem(DType::fp16, 2, 0, 64, 8, 64).problem).launches.empty());
    CHECK(plan_of(TestProblem(DType::fp16, {0, 0, 0}, 1, 8, 64).problem).launches.empty());
}

TEST_CASE("what it does not serve, it refuses with the value and the limit") {
    TestProblem test(DType::fp16, 1, 1, 64, 8, 64);
    Problem problem = test.problem;
    problem.block_size = 1025;
    CHECK(reason_of(problem) == "naive gives every query row a thread, so a block has at most 1024 tokens, not 1025");
    problem = test.problem;
    problem.pass = Pass::backward;
    CHECK(reason_of(problem) == "naive computes the forward pass only");
    problem = test.problem;
    problem.rotary = TensorView{};
    CHECK(reason_of(problem) == "naive does not apply a rotary embedding");
    problem = test.problem;
    problem.heads = 65536;
    CHECK(reason_of(problem) == "naive has heads along grid y, which ends at 65535, not 65536");
    problem = test.problem;
    problem.block_size = 1;
    problem.tokens = std::int64_t{1} << 31;
    CHECK(reason_of(problem) == "naive has tiles along grid x, which ends at 2147483647, not 2147483648");
}

TEST_CASE("the module carries PTX and a cubin for each architecture it was built for") {
    CHECK(naive_module().source == "naive/naive.cu");
    CHECK(naive_module().ptx.find(".target sm_75") != std::string_view::npos);
    REQUIRE_FALSE(naive_module().cubins.empty());
    for (const Cubin& cubin : naive_module().cubins) {
        REQUIRE(cubin.image.size() > 4);
        CHECK(std::memcmp(cubin.image.data(), "\177ELF", 4) == 0);
    }
}

}  // namespace
}  // namespace block_attention
