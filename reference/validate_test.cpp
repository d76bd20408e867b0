#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "reference/problem.h"
#include "reference/test_problem.h"

namespace block_attention {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

/// A sound problem of 2 sequences x 3 heads x 10 tokens x 8 dims, to be spoilt.
TestProblem sound() { return {DType::fp16, 2, 3, 10, 8, 4}; }
/// The same, jagged: sequences of 4, 0 and 6 tokens.
TestProblem sound_jagged() { return {DType::fp16, {0, 4, 4, 10}, 3, 8, 4}; }

void check_fault(const Problem& problem, const std::string& expected) {
    const auto fault = validate(problem);
    REQUIRE_MESSAGE(fault.has_value(), "no fault where one was expected: ", expected);
    CHECK_MESSAGE(fault->find(expected) != std::string::npos, *fault);
}

TEST_CASE("sound problems pass") {
    CHECK_FALSE(validate(sound().problem));
    CHECK_FALSE(validate(sound_jagged().problem));
    CHECK_FALSE(validate(TestProblem(DType::fp32, 0, 0, 0, 1, 1).problem));
    Problem empty = TestProblem(DType::fp32, 1, 1, 0, 8, 4).problem;
    empty.q.data = nullptr;  // nothing to point to
    CHECK_FALSE(validate(empty));
}

TEST_CASE("sizes") {
    TestProblem test = sound();
    SUBCASE("head dim") {
        test.problem.head_dim = 0;
        check_fault(test.problem, "the head dim is 0; it must be 1 or more");
    }
    SUBCASE("block size") {
        test.problem.block_size = 0;
        check_fault(test.problem, "the block size is 0; it must be 1 or more");
    }
    SUBCASE("block size beyond a tile's count") {
        test.problem.block_size = std::int64_t{1} << 31;
        check_fault(test.problem, "the block size is 2147483648; a tile holds at most 2147483647");
    }
    SUBCASE("sequences") {
        test.problem.sequences = -1;
        check_fault(test.problem, "the number of sequences is -1; it must be 0 or more");
    }
    SUBCASE("heads") {
        test.problem.heads = -2;
        check_fault(test.problem, "the number of heads is -2");
    }
    SUBCASE("tokens") {
        test.problem.tokens = -3;
        check_fault(test.problem, "the number of tokens is -3");
    }
    SUBCASE("a stride that overflows") {
        test.problem.k.strides.head = kHuge / 2;
        check_fault(test.problem, "k of 2 sequences x 3 heads x 10 tokens x 8 dims with strides");
    }
    SUBCASE("a size that overflows") {
        test.problem.tokens = kHuge / 4;
        check_fault(test.problem, "spans more than 2^63 - 1 bytes");
    }
    SUBCASE("bytes that overflow where elements do not") {
        test.problem.v.strides.sequence = kHuge / 2 + 1;
        check_fault(test.problem, "v of 2 sequences");
    }
    SUBCASE("negative stride") {
        test.problem.q.strides.token = -8;
        check_fault(test.problem, "q has the token stride -8; strides must be 0 or more");
    }
}

TEST_CASE("scale") {
    TestProblem test = sound();
    test.problem.scale = std::nanf("");
    check_fault(test.problem, "the scale is nan; it must be a finite number (1/sqrt(head dim) is 0.35355338)");
    test.problem.scale = -std::numeric_limits<float>::infinity();
    check_fault(test.problem, "the scale is -inf");
    for (const float scale : {0.0F, -1.0F}) {
        test.problem.scale = scale;
        CHECK_FALSE(validate(test.problem));
    }
}

TEST_CASE("offsets") {
    TestProblem test = sound_jagged();
    SUBCASE("not monotonic") {
        test.problem.offsets = {0, 6, 4, 10};
        check_fault(test.problem, "offsets[2] is 4, below offsets[1] = 6; offsets must not descend");
    }
    SUBCASE("beyond the tokens") {
        test.problem.offsets.back() = 11;
        check_fault(test.problem, "the last offset is 11, beyond the 10 tokens");
    }
    SUBCASE("not from 0") {
        test.problem.offsets.front() = 1;
        check_fault(test.problem, "offsets[0] is 1; the first sequence starts at token 0");
    }
    SUBCASE("not one more than sequences") {
        test.problem.offsets.pop_back();
        check_fault(test.problem, "there are 3 offsets for 3 sequences; a jagged batch has one more than sequences: 4");
    }
    SUBCASE("tokens behind the last sequence belong to no tile") {
        test.problem.offsets.back() = 7;
        CHECK_FALSE(validate(test.problem));
    }
    SUBCASE("a sequence stride") {
        test.problem.k.strides.sequence = 80;
        check_fault(test.problem,
                    "k has the sequence stride 80; in a jagged problem all sequences share the token axis");
    }
}

TEST_CASE("types") {
    TestProblem test = sound();
    SUBCASE("of the problem") {
        test.problem.dtype = static_cast<DType>(7);
        check_fault(test.problem, "the problem has an unknown element type (code 7); use fp16, bf16 or fp32");
    }
    SUBCASE("of a tensor") {
        test.problem.v.dtype = static_cast<DType>(9);
        check_fault(test.problem, "v has an unknown element type (code 9)");
    }
    SUBCASE("mixed") {
        test.problem.k.dtype = DType::bf16;
        check_fault(test.problem, "k is bf16, but the problem is fp16; all tensors of a problem have one element type");
    }
}

TEST_CASE("pointers") {
    TestProblem test = sound();
    SUBCASE("null") {
        test.problem.o.data = nullptr;
        check_fault(test.problem, "o points to null, but holds 960 bytes");
    }
    SUBCASE("misaligned") {
        test.problem.q.data = static_cast<char*>(test.problem.q.data) + 1;
        check_fault(test.problem, "q is misaligned: fp16 elements take an address that is a multiple of 2");
    }
}

TEST_CASE("overlap") {
    TestProblem test = sound();
    SUBCASE("output on an input") {
        test.problem.o.data = test.problem.v.data;
        check_fault(test.problem, "the output o overlaps v: they share bytes 0x");
    }
    SUBCASE("output partly on an input") {
        test.problem.o.data = static_cast<char*>(test.problem.k.data) + 2;
        check_fault(test.problem, "the output o overlaps k");
    }
    SUBCASE("inputs may share memory") {
        test.problem.k.data = test.problem.q.data;
        test.problem.v.data = test.problem.q.data;
        CHECK_FALSE(validate(test.problem));
    }
    SUBCASE("output elements on each other") {
        test.problem.o.strides.head = 0;
        check_fault(test.problem, "elements of the output o overlap: its head stride is 0");
    }
    SUBCASE("output rows that reach into the next") {
        test.problem.o.strides.token = 7;
        check_fault(test.problem, "elements of the output o overlap: its token stride is 7");
    }
    SUBCASE("an input may repeat data") {
        test.problem.k.strides.head = 0;
        test.problem.v.strides.token = 0;
        CHECK_FALSE(validate(test.problem));
    }
}

TEST_CASE("an output may be a slice of the tensor that holds the inputs") {
    // [tokens, 4, heads, dim], packed: q, k, v and o of a token stand side by side.
    constexpr std::int64_t kRow = 3 * 8;
    std::vector<std::uint16_t> packed(10 * 4 * kRow);
    Problem problem = sound_jagged().problem;
    const auto place = [&](std::int64_t slot) {
        return TensorView{packed.data() + slot * kRow, DType::fp16, {.sequence = 0, .head = 8, .token = 4 * kRow}};
    };
    problem.q = place(0);
    problem.k = place(1);
    problem.v = place(2);
    problem.o = place(3);
    CHECK_FALSE(validate(problem));
    problem.o = place(1);
    check_fault(problem, "the output o overlaps k");
    problem.o.data = packed.data() + 3 * kRow - 8;  // its first head is v's last
    check_fault(problem, "the output o overlaps");
}

TEST_CASE("transposed and padded outputs are sound") {
    TestProblem test = sound();
    std::vector<std::uint16_t> storage(10000);
    for (const Strides& strides : {Strides{.sequence = 240, .head = 80, .token = 1, .dim = 10},
                                   Strides{.sequence = 8, .head = 16, .token = 48, .dim = 1},
                                   Strides{.sequence = 1000, .head = 300, .token = 20, .dim = 2}}) {
        test.problem.o = {storage.data(), DType::fp16, strides};
        CHECK_FALSE(validate(test.problem));
    }
}

TEST_CASE("backward and rotary operands are checked as well") {
    TestProblem test = sound();
    test.problem.pass = Pass::backward;
    check_fault(test.problem, "dO points to null");
    test = sound();
    test.problem.rotary = TensorView{nullptr, DType::fp32, {.sequence = 0, .head = 0, .token = 8, .dim = 1}};
    check_fault(test.problem, "rotary points to null, but holds 320 bytes");
}

}  // namespace
}  // namespace block_attention
