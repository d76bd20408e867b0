#include "verify/witness.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "reference/oracle.h"
#include "verify/cases/case_spec.h"
#include "verify/cases/load.h"

namespace block_attention {
namespace {

Tensors solved(std::string_view spec) {
    Tensors tensors = load_case(parse_case(spec, 1), 1);
    tensors.poison(Operand::o);
    run_oracle(tensors.problem());
    return tensors;
}

TEST_CASE("a row of one key is that key's value, exactly") {
    const Tensors tensors = load_case(parse_case("tokens=1,dim=3,fill=normal", 1), 1);
    const WitnessTile tile = witness_tile(tensors.problem(), {.first_row = 0, .length = 1, .sequence = 0}, 0);
    for (std::int64_t d = 0; d < 3; ++d) {
        CHECK(tile.expected[static_cast<std::size_t>(d)] ==
              load_element(DType::fp16, tensors.problem().v.at(0, 0, 0, d)));
    }
}

TEST_CASE("two keys share by their logits") {
    const Tensors tensors = load_case(parse_case("tokens=2,dim=1,dtype=fp32,scale=1", 1), 1);
    const Problem& problem = tensors.problem();
    const auto set = [&](const TensorView& view, double first, double second) {
        store_element(DType::fp32, view.at(0, 0, 0, 0), first);
        store_element(DType::fp32, view.at(0, 0, 1, 0), second);
    };
    set(problem.q, 1, 0);
    set(problem.k, 2, 3);
    set(problem.v, 10, 20);
    const WitnessTile tile = witness_tile(problem, {.first_row = 0, .length = 2, .sequence = 0}, 0);
    CHECK(tile.expected[0] == doctest::Approx(10 + 10 / (1 + std::exp(-1.0))).epsilon(1e-15));
    CHECK(tile.expected[1] == 15);
    CHECK(tile.error[0] > 0);
    CHECK(tile.error[0] < 1e-12);
}

TEST_CASE("the oracle passes, in every type and with any values") {
    for (const char* spec :
         {"heads=2,tokens=70,dim=16,block=32", "lengths=5+0+40+1,heads=2,dim=16,block=16,dtype=bf16",
          "tokens=33,dim=8,block=16,dtype=fp32", "tokens=64,dim=16,fill=extreme-logits",
          "tokens=64,dim=16,fill=subnormal,dtype=fp32", "tokens=64,dim=16,fill=large-values",
          "heads=2,tokens=96,dim=16,block=32,fill=non-finite", "tokens=64,dim=16,fill=huge-keys,dtype=fp32"}) {
        CAPTURE(spec);
        const Tensors tensors = solved(spec);
        const Comparison comparison = compare_with_witness(tensors.problem());
        CHECK(comparison.passed());
        CHECK(comparison.largest_share <= 1);
        CHECK(comparison.elements == tensors.footprint(Operand::o).places());
    }
}

TEST_CASE("one unit in the last place is seen, and where") {
    const Tensors tensors = solved("heads=2,tokens=40,dim=8,block=16,dtype=fp32");
    void* element = tensors.problem().o.at(0, 1, 20, 3);
    const auto value = static_cast<float>(load_element(DType::fp32, element));
    store_element(DType::fp32, element, static_cast<double>(std::nextafter(value, 100.0F)));
    const Comparison comparison = compare_with_witness(tensors.problem());
    CHECK(comparison.wrong == 1);
    REQUIRE_FALSE(comparison.tiles.empty());
    const TileComparison& worst = comparison.tiles.front();
    CHECK(worst.tile.first_row == 16);
    CHECK(worst.head == 1);
    CHECK(worst.worst.row == 4);
    CHECK(worst.worst.dim == 3);
    CHECK(comparison.shares.size() == 6);
    CHECK(comparison.shares[3] == worst.worst.share);
}

TEST_CASE("attention across a tile's border is seen") {
    const Tensors tensors = solved("tokens=32,dim=8,block=16");
    Problem wider = tensors.problem();
    wider.block_size = 32;
    run_oracle(wider);
    CHECK(compare_with_witness(tensors.problem()).wrong > 200);
}

TEST_CASE("a NaN is wrong where the result is finite, and only there") {
    const Tensors tensors = solved("heads=2,tokens=96,dim=16,block=32,fill=non-finite");
    CHECK(compare_with_witness(tensors.problem()).passed());
    store_element(DType::fp16, tensors.problem().o.at(0, 0, 0, 0), std::numeric_limits<double>::quiet_NaN());
    const Comparison comparison = compare_with_witness(tensors.problem());
    CHECK(comparison.wrong == 1);
    CHECK(std::isinf(comparison.largest_share));
}

TEST_CASE("a sequence too long for the dense evaluation gives the same tile") {
    const Tensors shorter = load_case(parse_case("tokens=64,dim=2,block=4", 1), 1);
    const Tensors longer = load_case(parse_case("tokens=20000,dim=2,block=4", 1), 1);  // 4e8 pairs
    const Tile tile{.first_row = 60, .length = 4, .sequence = 0};
    CHECK(witness_tile(shorter.problem(), tile, 0).expected == witness_tile(longer.problem(), tile, 0).expected);
    CHECK(witness_tile(shorter.problem(), tile, 0).error == witness_tile(longer.problem(), tile, 0).error);
}

}  // namespace
}  // namespace block_attention
