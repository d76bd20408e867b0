#include "reference/launch.h"

#include <doctest/doctest.h>

namespace block_attention {
namespace {

TEST_CASE("a plan in words names every argument") {
    const KernelModule module{"demo", "demo/demo.cu", "", {}};
    Plan plan;
    plan.tables.push_back(make_table("tiles", std::vector<std::int32_t>{1, 2, 3}));
    plan.launches.push_back(
        {.module = &module,
         .kernel = "kernel",
         .grid = {7, 2, 1},
         .block = {128, 1, 1},
         .cluster = {2, 1, 1},
         .dynamic_shared_bytes = 1024,
         .arguments = {BufferArgument{Operand::q}, BufferArgument{Operand::o, 64}, TableArgument{0},
                       value_argument(1.5F),
                       TensorMapArgument{.operand = Operand::k, .dims = {64, 100}, .box = {64, 8}}}});
    CHECK(to_string(plan) ==
          "table tiles: 12 bytes\n"
          "launch kernel of demo/demo.cu: grid 7 x 2 x 1, block 128 x 1 x 1, cluster 2 x 1 x 1, 1024 bytes of dynamic "
          "shared memory, (q, o + 64 bytes, tiles, 4 bytes by value, tensor map of k: dims 64 x 100, box 64 x 8)\n");
}

TEST_CASE("values keep their bytes and alignment") {
    struct Pair {
        std::int64_t a;
        std::int32_t b;
    };
    const ValueArgument argument = value_argument(Pair{1, 2});
    CHECK(argument.bytes.size() == sizeof(Pair));
    CHECK(argument.alignment == alignof(Pair));
    std::int64_t a = 0;
    std::memcpy(&a, argument.bytes.data(), sizeof a);
    CHECK(a == 1);
}

}  // namespace
}  // namespace block_attention
