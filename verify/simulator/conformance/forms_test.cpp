#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include <stdexcept>

#include "verify/simulator/conformance/execute.h"
#include "verify/simulator/conformance/forms.h"
#include "verify/simulator/conformance/results_file.h"
#include "verify/simulator/conformance/special_values.h"
#include "verify/simulator/conformance/summary.h"
#include "verify/simulator/conformance/tuples.h"

namespace block_attention::conformance {

namespace {

TEST_CASE("a format's values are those of the host's own types") {
    const Format single = format_of('f');
    const Format wide = format_of('d');
    for (std::uint64_t i = 0; i < 20000; ++i) {
        const auto bits = static_cast<std::uint32_t>(i * 2654435761U + 12345);
        const auto value = std::bit_cast<float>(bits);
        if (std::isnan(value)) continue;
        CHECK(single.value(bits) == double{value});
        CHECK(single.round(double{value}) == bits);
        // Between two floats: the host rounds a double to the nearest one, ties to even.
        const double between = double{value} * (1 + 0x1p-25 * static_cast<double>(i % 7));
        CHECK(single.round(between) == std::bit_cast<std::uint32_t>(static_cast<float>(between)));
        CHECK(wide.round(between) == std::bit_cast<std::uint64_t>(between));
        CHECK(wide.value(std::bit_cast<std::uint64_t>(between)) == between);
    }
}

TEST_CASE("16-bit formats: every value goes there and back") {
    for (const Kind kind : {'e', 'g'}) {
        const Format format = format_of(kind);
        for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
            if (!std::isnan(format.value(bits))) CHECK(format.round(format.value(bits)) == bits);
        }
    }
    const Format half = format_of('e');
    CHECK(half.value(0x3C00) == 1.0);
    CHECK(half.value(0x0001) == 0x1p-24);
    CHECK(half.round(65519.99) == 0x7BFF);
    CHECK(half.round(65520.0) == 0x7C00);
    CHECK(half.round(0x1p-25) == 0);
    CHECK(half.round(0x1.8p-24) == 2);
}

TEST_CASE("tuples are the same each time, fit their kind and hold the special values") {
    for (const std::string operands : {"f", "ff", "fff", "hh", "wwaa", "EE", "lp", "g"}) {
        const auto tuples = make_tuples(operands);
        CHECK(tuples == make_tuples(operands));
        REQUIRE(tuples.size() == operands.size() * kTuples);
        for (std::size_t k = 0; k < operands.size(); ++k) {
            const auto* values = tuples.data() + k * kTuples;
            const std::set<std::uint64_t> distinct(values, values + kTuples);
            CHECK(distinct.size() > (operands[k] == 'p' ? 1 : 500));
            if (bits_of(operands[k]) < 64) CHECK(*distinct.rbegin() < std::uint64_t{1} << bits_of(operands[k]));
        }
    }
    // Every pair of the most important values.
    const auto pairs = make_tuples("ff");
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (std::size_t t = 0; t < kTuplesPerQuarter; ++t) seen.emplace(pairs[t], pairs[kTuples + t]);
    for (const std::uint64_t a :
         {0x0U, 0x80000000U, 0x7F800000U, 0xFF800000U, 0x7FC00000U, 0x1U, 0x7F7FFFFFU, 0x800000U}) {
        for (const std::uint64_t b : {0x0U, 0x80000000U, 0x3F800000U, 0xBF800000U, 0x7F800001U, 0x3F800001U}) {
            CHECK(seen.contains({a, b}));
        }
    }
}

TEST_CASE("predicates are uniform in some CTAs and warps, and mixed in others") {
    const auto values = make_tuples("p");
    std::set<std::size_t> per_warp;
    std::set<std::size_t> per_cta;
    const auto count = [&](std::size_t begin, std::size_t size) {
        return static_cast<std::size_t>(std::count(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   values.begin() + static_cast<std::ptrdiff_t>(begin + size), 1));
    };
    for (std::size_t t = 0; t < kTuples; t += 32) per_warp.insert(count(t, 32));
    for (std::size_t t = 0; t < kTuples; t += kThreads) per_cta.insert(count(t, kThreads));
    for (const std::size_t lanes : {0, 1, 31, 32}) CHECK(per_warp.contains(lanes));
    for (const std::size_t threads : {0U, 1U, kThreads - 1, kThreads}) CHECK(per_cta.contains(threads));
}

TEST_CASE("one wrong bit changes the hash of its quarter, and of no other") {
    const Form form{"x", "", "", "wl", ""};
    Results results(2 * kTuples);
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = i * 977;
    const Hashes before = hash(form, results);
    for (const std::size_t result : {0, 1}) {
        for (const std::size_t tuple : {std::size_t{0}, std::size_t{1023}, std::size_t{2048}, kTuples - 1}) {
            for (const unsigned bit : {0U, 17U, 31U, 63U}) {
                Results changed = results;
                changed[result * kTuples + tuple] ^= std::uint64_t{1} << bit;
                const Hashes after = hash(form, changed);
                for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
                    CHECK((after.at(quarter) != before.at(quarter)) == (quarter == tuple / kTuplesPerQuarter));
                }
            }
        }
    }
}

TEST_CASE("a file of results is read as it was written, and faults are named") {
    FormList list;
    list.add("add.u32", "w", "ww");
    list.add("shl.b32", "w", "wa", "note");
    ResultsFile file{
        "a GPU", 7, 0x123456789ABCDEF0, {{"add.u32", {1, 2, 3, 0xFFFFFFFF}}, {"shl.b32@note", {5, 6, 7, 8}}}};
    std::stringstream stream;
    write_results(stream, file, list.forms());
    const ResultsFile read = read_results(stream);
    CHECK(read.device == file.device);
    CHECK(read.candidates == file.candidates);
    CHECK(read.list_hash == file.list_hash);
    CHECK(read.hashes == file.hashes);
    for (const std::string faulty :
         {"add.u32 1 2 3\n", "add.u32 1 2 3 x\n", "a 1 2 3 4\na 1 2 3 4\n", "# candidates: many\n"}) {
        std::istringstream lines(faulty);
        CHECK_THROWS_AS(read_results(lines), std::runtime_error);
    }
}

TEST_CASE("patterns") {
    CHECK(matches("sin.approx.ftz.f32", "sin.approx*"));
    CHECK(matches("sin.approx", "sin.approx*"));
    CHECK_FALSE(matches("asin.approx", "sin.approx*"));
    CHECK(matches("fma.rz.relu.bf16x2", "fma.rz*bf16*"));
    CHECK_FALSE(matches("fma.rz.f16", "fma.rz*bf16*"));
    CHECK(matches("", "*"));
    CHECK_FALSE(matches("a", ""));
}

TEST_CASE("the list of forms fingerprints kernels and operands") {
    FormList list;
    list.add("add.u32", "w", "ww");
    std::vector<Form> forms = list.take();
    const TupleTable tuples(forms);
    const std::uint64_t before = hash_of(forms, tuples);
    CHECK(hash_of(forms, tuples) == before);
    forms[0].code += " ";
    CHECK(hash_of(forms, tuples) != before);
}

TEST_CASE("a fault of the simulator, a form it refuses and a finding are told apart") {
    FormList list;
    list.group("some");
    list.add("add.u32", "w", "ww");
    list.add("vadd.u32.u32.u32", "w", "ww");
    list.add("nonsense.u32", "w", "ww");
    list.add_code("ld.global.b32@out-of-bounds", "w", "w", "ld.global.b32 %d0, [%own+1000000000];");
    const std::vector<Form> forms = list.take();
    ResultsFile file;
    for (const auto& form : forms) file.hashes.emplace(form.name, Hashes{});
    const Comparison comparison(forms, file);
    std::string all;
    for (const auto& fault : comparison.faults()) all += fault + "\n";
    CHECK(all.find("add.u32: results of quarter 1") != std::string::npos);
    CHECK(all.find("nonsense.u32: refused, and no known reason") != std::string::npos);
    CHECK(all.find("ld.global.b32@out-of-bounds: ") != std::string::npos);
    CHECK(all.find("out-of-bounds: ") != std::string::npos);
    CHECK(all.find("vadd.u32.u32.u32:") == std::string::npos);
    CHECK(comparison.group_table().find("| some | 4 | 2 | 2 |") != std::string::npos);
    CHECK(comparison.refusal_table().find("| `vadd*` | 1 |") != std::string::npos);
}

}  // namespace

}  // namespace block_attention::conformance
