#include "verify/footprint.h"

#include <doctest/doctest.h>

#include <vector>

#include "verify/cases/case_spec.h"
#include "verify/tensors.h"

namespace block_attention {
namespace {

Tensors tensors_of(std::string_view spec) {
    const Case test_case = parse_case(spec, 1);
    return Tensors(make_problem(test_case), shift_of(test_case.layout));
}

std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Footprint& footprint) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    footprint.for_each_gap([&](ElementRange gap) { found.emplace_back(gap.begin, gap.end); });
    return found;
}

TEST_CASE("a dense tensor has no gap") {
    for (const char* layout : {"bhsd", "bshd", "transposed", "interleaved", "unaligned"}) {
        const Tensors tensors = tensors_of(std::string("batch=2,heads=3,tokens=5,dim=4,layout=") + layout);
        const Footprint& footprint = tensors.footprint(Operand::q);
        CHECK(footprint.span() == 120);
        CHECK(footprint.places() == 120);
        CHECK(gaps(footprint).empty());
        CHECK(footprint.contains(119));
        CHECK_FALSE(footprint.contains(120));
        CHECK_FALSE(footprint.contains(-1));
    }
}

TEST_CASE("padding is a gap") {
    const Tensors tensors = tensors_of("heads=1,tokens=3,dim=4,layout=padded");
    const Footprint& footprint = tensors.footprint(Operand::k);
    CHECK(footprint.span() == 28);
    CHECK(footprint.places() == 12);
    CHECK(gaps(footprint) == std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 12}, {16, 24}});
    CHECK(footprint.contains(3));
    CHECK_FALSE(footprint.contains(4));
    std::int64_t inside = 0;
    footprint.for_each_run([&](ElementRange run) { inside += run.end - run.begin; });
    CHECK(inside == 12);
}

TEST_CASE("rows behind the last sequence are a gap") {
    const Tensors tensors = tensors_of("lengths=2+1,trailing=2,dim=4");
    CHECK(gaps(tensors.footprint(Operand::o)) == std::vector<std::pair<std::int64_t, std::int64_t>>{{12, 20}});
}

TEST_CASE("shared elements have one place") {
    const Tensors tensors = tensors_of("batch=2,heads=3,tokens=5,dim=4,layout=shared-heads");
    CHECK(tensors.footprint(Operand::k).places() == 40);
    CHECK(tensors.footprint(Operand::o).places() == 120);
}

TEST_CASE("an empty tensor has no place") {
    const Tensors tensors = tensors_of("batch=0");
    CHECK(tensors.footprint(Operand::q).span() == 0);
    CHECK(tensors.footprint(Operand::q).places() == 0);
}

TEST_CASE("a place is named by its element, in every layout") {
    for (const LayoutFacts& facts : layouts()) {
        if (facts.layout == Layout::thd) continue;
        CAPTURE(facts.name);
        const Tensors tensors = tensors_of("batch=2,heads=3,tokens=5,dim=4,layout=" + std::string(facts.name));
        const TensorView& o = tensors.problem().o;
        CHECK(element_at(tensors.problem(), Operand::o, o.offset(1, 2, 4, 3)) == "sequence 1, head 2, token 4, dim 3");
        CHECK(element_at(tensors.problem(), Operand::o, 0) == "sequence 0, head 0, token 0, dim 0");
    }
    const Tensors jagged = tensors_of("lengths=2+3,heads=2,dim=4");
    CHECK(element_at(jagged.problem(), Operand::o, jagged.problem().o.offset(0, 1, 4, 2)) == "head 1, token 4, dim 2");
    const Tensors shared = tensors_of("batch=2,heads=3,tokens=5,dim=4,layout=shared-heads");
    CHECK(element_at(shared.problem(), Operand::k, 25) == "sequence 1, head 0, token 1, dim 1");
    const Tensors single = tensors_of("heads=1,tokens=5,dim=1");
    CHECK(element_at(single.problem(), Operand::k, 3) == "sequence 0, head 0, token 3, dim 0");
}

}  // namespace
}  // namespace block_attention
