#include "verify/cases/layout.h"

#include <doctest/doctest.h>

#include "verify/cases/case.h"
#include "verify/tensors.h"

namespace block_attention {
namespace {

Case small_case(Layout layout) {
    Case test_case;
    test_case.batch = 2;
    test_case.heads = 3;
    test_case.tokens = 5;
    test_case.dim = 4;
    test_case.block = 2;
    test_case.layout = layout;
    return test_case;
}

TEST_CASE("every layout has a name that leads back to it") {
    for (const LayoutFacts& facts : layouts()) {
        CHECK(parse_layout(facts.name) == facts.layout);
        CHECK(name_of(facts.layout) == facts.name);
    }
    CHECK_FALSE(parse_layout("bhds"));
}

TEST_CASE("every layout gives a valid problem, and every output element a place of its own") {
    for (const LayoutFacts& facts : layouts()) {
        CAPTURE(facts.name);
        const Tensors tensors(make_problem(small_case(facts.layout)), shift_of(facts.layout));
        CHECK_FALSE(validate(tensors.problem()));
        CHECK(tensors.footprint(Operand::o).places() == 2 * 3 * 5 * 4);
    }
}

TEST_CASE("layouts lie in memory as their names say") {
    const auto strides = [](Layout layout, Operand operand) {
        return strides_of(layout, make_problem(small_case(layout)), operand);
    };
    CHECK(strides(Layout::bhsd, Operand::q) == Strides{.sequence = 60, .head = 20, .token = 4, .dim = 1});
    CHECK(strides(Layout::bshd, Operand::q) == Strides{.sequence = 60, .head = 4, .token = 12, .dim = 1});
    CHECK(strides(Layout::padded, Operand::q) == Strides{.sequence = 180, .head = 12, .token = 36, .dim = 1});
    CHECK(strides(Layout::every_second, Operand::q) == Strides{.sequence = 120, .head = 8, .token = 24, .dim = 2});
    CHECK(strides(Layout::packed_qkv, Operand::v) == Strides{.sequence = 180, .head = 4, .token = 36, .dim = 1});
    CHECK(strides(Layout::packed_qkv, Operand::o) == Strides{.sequence = 60, .head = 4, .token = 12, .dim = 1});
    CHECK(strides(Layout::transposed, Operand::k) == Strides{.sequence = 60, .head = 20, .token = 1, .dim = 5});
    CHECK(strides(Layout::interleaved, Operand::k) == Strides{.sequence = 60, .head = 1, .token = 12, .dim = 3});
    CHECK(strides(Layout::shared_batch, Operand::k).sequence == 0);
    CHECK(strides(Layout::shared_batch, Operand::o).sequence == 60);
    CHECK(strides(Layout::shared_heads, Operand::v).head == 0);
    CHECK(strides(Layout::shared_heads, Operand::q).head == 20);
}

TEST_CASE("a jagged layout has no sequence stride") {
    Case test_case = small_case(Layout::thd);
    test_case.lengths = {2, 0, 3};
    CHECK(strides_of(Layout::thd, make_problem(test_case), Operand::q) ==
          Strides{.sequence = 0, .head = 4, .token = 12, .dim = 1});
}

}  // namespace
}  // namespace block_attention
