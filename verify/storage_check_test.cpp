#include "verify/storage_check.h"

#include <doctest/doctest.h>

#include <vector>

#include "reference/oracle.h"
#include "verify/cases/case_spec.h"
#include "verify/cases/load.h"

namespace block_attention {
namespace {

/// A solved problem: o is poisoned, then written by the oracle.
Tensors solved(std::string_view spec) {
    Tensors tensors = load_case(parse_case(spec, 1), 1);
    tensors.poison(Operand::o);
    run_oracle(tensors.problem());
    return tensors;
}

constexpr const char* kDense = "heads=2,tokens=10,dim=8,block=4";
constexpr const char* kPadded = "heads=2,tokens=10,dim=8,block=4,layout=padded";

TEST_CASE("a correct run leaves nothing to report, in any layout") {
    for (const LayoutFacts& facts : layouts()) {
        CAPTURE(facts.name);
        const std::string sizes = facts.layout == Layout::thd ? "lengths=3+0+7,trailing=2" : "batch=2,tokens=7";
        const Tensors tensors = solved(sizes + ",heads=2,dim=8,block=4,layout=" + std::string(facts.name));
        CHECK(check_output(tensors, Operand::o).empty());
        for (const Operand input : tensors.problem().inputs()) {
            CHECK(check_input(tensors, input, tensors.allocation(input), 0).empty());
        }
    }
}

TEST_CASE("a byte behind the output is seen") {
    const Tensors tensors = solved(kDense);
    tensors.allocation(Operand::o)[tensors.begin() + tensors.span(Operand::o).size() + 3] = std::byte{0};
    const auto faults = check_output(tensors, Operand::o);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].rule == "guard-zone");
    CHECK(faults[0].message == "the guard zone of o was written, first 3 bytes behind the last element of o");
    CHECK(faults[0].occurrences == 1);
}

TEST_CASE("bytes before the output are seen") {
    const Tensors tensors = solved(kDense);
    tensors.allocation(Operand::o)[0] = std::byte{0};
    tensors.allocation(Operand::o)[tensors.begin() - 1] = std::byte{0};
    const auto faults = check_output(tensors, Operand::o);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].message == "the guard zone of o was written, first 4096 bytes before the first element of o");
    CHECK(faults[0].occurrences == 2);
}

TEST_CASE("a byte in a gap of the output is seen") {
    const Tensors tensors = solved(kPadded);
    tensors.span(Operand::o)[16] = std::byte{0};
    const auto faults = check_output(tensors, Operand::o);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].rule == "gap");
    CHECK(faults[0].message ==
          "memory between the elements of o was written, first at byte 16 of o, place 8 of its span");
}

TEST_CASE("an element that was not written is seen") {
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        const Tensors tensors = solved(std::string(kDense) + ",dtype=" + std::string(name_of(dtype)));
        void* element = tensors.problem().o.at(0, 1, 7, 5);
        std::fill_n(static_cast<std::byte*>(element), size_of(dtype), kPoison);
        const auto faults = check_output(tensors, Operand::o);
        REQUIRE(faults.size() == 1);
        CHECK(faults[0].rule == "unwritten");
        CHECK(faults[0].message ==
              "1 of 160 elements of o were never written, first sequence 0, head 1, token 7, dim 5");
    }
}

TEST_CASE("an element that a kernel sets to NaN counts as written") {
    const Tensors tensors = solved(kDense);
    store_element(DType::fp16, tensors.problem().o.at(0, 0, 0, 0), std::numeric_limits<double>::quiet_NaN());
    CHECK(check_output(tensors, Operand::o).empty());
}

TEST_CASE("a changed input is seen, wherever it changed") {
    const Tensors tensors = solved(kPadded);
    const std::span<const std::byte> host = tensors.allocation(Operand::k);
    std::vector<std::byte> device(host.begin(), host.end());
    device[tensors.begin() + 1] ^= std::byte{1};
    device[tensors.begin() + 16] ^= std::byte{1};
    device[7] ^= std::byte{1};
    const auto faults = check_input(tensors, Operand::k, device, 0);
    REQUIRE(faults.size() == 3);
    CHECK(faults[0].rule == "guard-zone");
    CHECK(faults[1].rule == "gap");
    CHECK(faults[2].rule == "input-changed");
    CHECK(faults[2].message == "the input k was changed, first at sequence 0, head 0, token 0, dim 0");
}

TEST_CASE("pieces of an input are checked at their own place, and their faults merged") {
    const Tensors tensors = solved(kDense);
    const std::span<const std::byte> host = tensors.allocation(Operand::q);
    std::vector<std::byte> device(host.begin(), host.end());
    const auto place = static_cast<std::size_t>(tensors.problem().q.offset(0, 1, 2, 3)) * 2;
    device[tensors.begin() + place] ^= std::byte{1};
    device[tensors.begin() + place + 2] ^= std::byte{1};
    const std::size_t middle = tensors.begin() + place + 1;
    const std::span<const std::byte> all = device;
    auto faults = check_input(tensors, Operand::q, all.first(middle), 0);
    merge(faults, check_input(tensors, Operand::q, all.subspan(middle), middle));
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].message == "the input q was changed, first at sequence 0, head 1, token 2, dim 3");
    CHECK(faults[0].occurrences == 2);
}

}  // namespace
}  // namespace block_attention
