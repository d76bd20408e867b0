#include "verify/simulator/programs/programs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reference/dtype.h"
#include "verify/simulator/programs/product.h"

namespace block_attention::programs {
namespace {

constexpr std::array kInputs{Input::integers, Input::normal};

const Launch& only_launch(const Plan& plan) {
    REQUIRE(plan.launches.size() == 1);
    return plan.launches.front();
}

/// Eigen's C, rounded to the program's type.
std::vector<std::byte> expected_bytes(const Product& product) {
    const auto bytes = static_cast<std::size_t>(size_of(product.sums));
    std::vector<std::byte> c(static_cast<std::size_t>(product.expected.size()) * bytes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.expected.size()); ++i) {
        store_element(product.sums, c.data() + i * bytes, round_to(product.sums, product.expected.data()[i]));
    }
    return c;
}

/// What the H200 computed, by program, input and shape; empty if it did not run that.
std::string h200_checksum(const Program& program, Input input, const Shape& shape) {
    std::ifstream file(BLOCK_ATTENTION_H200_RESULTS);
    const auto h200 = nlohmann::json::parse(file);
    for (const auto& result : h200.at("results")) {
        if (result.at("program") == program.name && result.at("input") == name_of(input) && result.at("m") == shape.m &&
            result.at("n") == shape.n && result.at("k") == shape.k) {
            return result.at("checksum");
        }
    }
    return "";
}

TEST_CASE("the launches of every program") {
    CHECK(all_programs().size() == 6);
    for (const Program& program : all_programs()) {
        CAPTURE(program.name);
        CHECK(&program_named(program.name) == &program);
        for (const Shape& shape : program.shapes) {
            const Plan plan = program.plan(shape, program.settings);
            const Launch& launch = only_launch(plan);
            CHECK(launch.module->ptx.find(fmt::format(".entry {}(", launch.kernel)) != std::string_view::npos);
            REQUIRE(launch.module->cubins.size() == 1);
            CHECK(launch.module->cubins.front().architecture == program.architecture);
            CHECK(launch.module->cubins.front().specific);
            CHECK(launch.dynamic_shared_bytes <= 232448);
            CHECK(launch.grid.x % launch.cluster.x == 0);
        }
    }
    const Program& cluster = program_named("hopper_gemm_cluster");
    const Plan plan = cluster.plan({300, 168, 328}, cluster.settings);
    CHECK(only_launch(plan).grid == Dim3{4, 2, 1});  // the fourth CTA completes a cluster, and has nothing to write
    CHECK(only_launch(plan).cluster == Dim3{2, 1, 1});
}

TEST_CASE("descriptors as a launch gets them") {
    // The constants of hardware-independent sources: K-major SBO 1024; MN-major LBO 8192, SBO 1024; 128B swizzle.
    const auto settings_of = [](std::string_view name) {
        const Program& program = program_named(name);
        const Plan plan = program.plan(program.shapes.front(), program.settings);
        std::array<std::uint64_t, 3> words{};
        const auto& argument = std::get<ValueArgument>(only_launch(plan).arguments.at(3));
        std::memcpy(words.data(), argument.bytes.data(), sizeof words);
        return words;
    };
    const auto hopper = settings_of("hopper_gemm");
    CHECK(hopper[0] == 0x4000004000010000);
    CHECK(hopper[1] == 0x4000004002000000);
    CHECK(hopper[2] == std::uint64_t{32768} << 32);  // no instruction descriptor, then the bytes
    const auto blackwell = settings_of("blackwell_gemm_m64");
    CHECK(blackwell[0] == 0x4000404000010000);
    CHECK(blackwell[1] == 0x4000404002000000);
    CHECK(blackwell[2] == (std::uint64_t{24576} << 32 | 0x04210010));
    CHECK(settings_of("blackwell_gemm_m128")[2] == (std::uint64_t{32768} << 32 | 0x08210010));
    CHECK(settings_of("blackwell_gemm_tmem_a")[2] == (std::uint64_t{16384} << 32 | 0x08210490));
}

TEST_CASE("shapes and names that no program has") {
    const Program& program = all_programs().front();
    for (const Shape& shape :
         {Shape{0, 8, 8}, Shape{1, 12, 8}, Shape{1, 8, 0}, Shape{1, 8, 4}, Shape{1, 0, 8}, Shape{0x80000000, 8, 8}}) {
        CHECK_THROWS_AS((void)program.plan(shape, program.settings), std::invalid_argument);
    }
    CHECK_THROWS_WITH_AS((void)program_named("gemm"),
                         "no program 'gemm'; there are: hopper_gemm, hopper_gemm_cluster, blackwell_gemm_m64, "
                         "blackwell_gemm_m128, blackwell_gemm_tmem_a, blackwell_gemm_warp_specialized",
                         std::invalid_argument);
}

TEST_CASE("a result is compared element by element") {
    for (const Program& program : all_programs()) {
        CAPTURE(program.name);
        for (const Input input : kInputs) {
            const Product product = make_product(program, {64, 40, 320}, input);
            const std::vector<std::byte> right = expected_bytes(product);
            CHECK_FALSE(find_mismatch(product, right));
            const auto with = [&](double value) {
                auto changed = right;
                store_element(program.sums, changed.data() + 77 * static_cast<std::size_t>(size_of(program.sums)),
                              value);
                return changed;
            };
            const double value =
                load_element(program.sums, right.data() + 77 * static_cast<std::size_t>(size_of(program.sums)));
            CHECK(find_mismatch(product, with(std::numeric_limits<double>::quiet_NaN())));
            CHECK(find_mismatch(product, with(-value)));
            // A hundredth of one product, which fp32 sums resolve and bf16 ones do not.
            if (program.sums == DType::fp32) {
                CHECK(find_mismatch(product, with(round_to(program.sums, value + 0.01))));
            } else {
                CHECK(find_mismatch(product, with(round_to(program.sums, value * 1.01))));
            }
        }
    }
    const Product product = make_product(all_programs().front(), {16, 8, 640}, Input::normal);
    CHECK(product.error.minCoeff() > 0);
    CHECK(product.error.maxCoeff() < 1e-3);
    CHECK(
        find_mismatch(product, std::vector<std::byte>(std::size_t{16} * 8 * 4))->starts_with("C[0, 0] is 0; A B is "));
}

TEST_CASE("checksums") {
    CHECK(checksum({}) == 0xCBF29CE484222325);
    CHECK(checksum({std::byte{'a'}}) == 0xAF63DC4C8601EC8C);
    CHECK(checksum({std::byte{'f'}, std::byte{'o'}, std::byte{'o'}, std::byte{'b'}, std::byte{'a'}, std::byte{'r'}}) ==
          0x85944171F73967E8);
}

TEST_CASE("what the H200 computed of integers is what Eigen computes, and clusters change no bit") {
    for (const std::string_view name : {"hopper_gemm", "hopper_gemm_cluster"}) {
        const Program& program = program_named(name);
        for (const Shape& shape : program.shapes) {
            const Product product = make_product(program, shape, Input::integers);
            CHECK(h200_checksum(program, Input::integers, shape) ==
                  fmt::format("{:016x}", checksum(expected_bytes(product))));
            const std::string normal = h200_checksum(program, Input::normal, shape);
            CHECK(!normal.empty());
            CHECK(normal == h200_checksum(all_programs().front(), Input::normal, shape));
        }
    }
}

TEST_SUITE("simulated") {
    TEST_CASE("every program is right under every schedule, with one result") {
        constexpr std::uint64_t kSchedules = 8;
        for (const Program& program : all_programs()) {
            for (const Shape& shape : program.shapes) {
                const Plan plan = program.plan(shape, program.settings);
                for (const Input input : kInputs) {
                    CAPTURE(
                        fmt::format("{}, {} x {} x {}, {}", program.name, shape.m, shape.n, shape.k, name_of(input)));
                    const Product product = make_product(program, shape, input);
                    std::vector<std::byte> first;
                    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
                        const auto device = open_simulator(program, seed);
                        const Outcome outcome = run_product(*device, plan, product);
                        REQUIRE(outcome.death == "");
                        for (const Finding& finding : outcome.findings) FAIL_CHECK(to_string(finding));
                        if (seed == 1) {
                            first = outcome.c;
                            const auto mismatch = find_mismatch(product, first);
                            CHECK_MESSAGE(!mismatch, mismatch.value_or(""));
                        }
                        CHECK(outcome.c == first);
                    }
                    const std::string h200 = h200_checksum(program, input, shape);
                    CHECK((h200.empty() || h200 == fmt::format("{:016x}", checksum(first))));
                    CHECK(h200.empty() == (program.architecture != 90));
                }
            }
        }
    }
}

}  // namespace
}  // namespace block_attention::programs
