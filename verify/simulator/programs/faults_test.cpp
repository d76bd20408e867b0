#include "verify/simulator/programs/faults.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "verify/simulator/programs/product.h"

namespace block_attention::programs {
namespace {

constexpr std::string_view kPtx =
    "\t// .globl one\n.entry one(\n)\n{\n"
    "\tmbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;\n"
    "mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r3], 0;\n"
    "\tbar.sync \t0;\n}\n"
    ".entry two(\n)\n{\n\tbar.sync \t0;\n}\n";

TEST_CASE("edits of PTX") {
    const std::string waits = edited_ptx(kPtx, "one", {{"mbarrier.try_wait.", 1, "", ""}});
    CHECK(waits.find("b64 p, [%r1], %r2;") != std::string::npos);
    CHECK(waits.find("\nsetp.eq.u32 %p7, 0, 0;\n") != std::string::npos);

    const std::string all = edited_ptx(kPtx, "one", {{"mbarrier.try_wait.", PtxEdit::kEverywhere, "shared::cta", "x"}});
    CHECK(all.find("parity.x.b64 p,") != std::string::npos);
    CHECK(all.find("parity.x.b64 %p7,") != std::string::npos);

    // Of two kernels the right one.
    const std::string second = edited_ptx(kPtx, "two", {{"bar.sync", 0, "", ""}});
    CHECK(second.find("bar.sync") == kPtx.find("bar.sync"));
    CHECK(second.find("bar.sync", second.find(".entry two")) == std::string::npos);
    CHECK(second.ends_with("{\n\n}\n"));

    CHECK(edited_ptx(kPtx, "one", {}) == kPtx);
    CHECK_THROWS_WITH_AS(edited_ptx(kPtx, "three", {}), "no kernel three in the PTX", std::invalid_argument);
    CHECK_THROWS_WITH_AS(edited_ptx(kPtx, "two", {{"bar.sync", 1, "", ""}}),
                         "two has 'bar.sync' 1 times, too few to edit number 1", std::invalid_argument);
    CHECK_THROWS_AS(edited_ptx(kPtx, "two", {{"mbarrier", PtxEdit::kEverywhere, "", ""}}), std::invalid_argument);
    CHECK_THROWS_AS(edited_ptx(kPtx, "two", {{"bar.sync", 0, "arrive", ""}}), std::invalid_argument);
}

/// How often each of these occurs in a kernel.
std::vector<int> counts(const Program& program, const std::vector<std::string_view>& instructions) {
    std::vector<int> result;
    for (const std::string_view instruction : instructions) {
        int count = 0;
        try {
            for (;; ++count) edited_ptx(program.module().ptx, program.name, {{instruction, count, "", ""}});
        } catch (const std::invalid_argument&) {
            result.push_back(count);
        }
    }
    return result;
}

TEST_CASE("the instructions that the faults count in each kernel are all there are") {
    const std::vector<std::string_view> instructions{
        "mbarrier.try_wait.", "wgmma.wait_group.",         "tcgen05.wait::", "tcgen05.fence::after",
        "fence.proxy.async.", "cp.async.bulk.wait_group.", "bar.sync",       "barrier.cluster.wait."};
    const std::map<std::string_view, std::vector<int>> expected{
        {"hopper_gemm", {2, 2, 0, 0, 1, 1, 2, 0}},
        {"hopper_gemm_cluster", {2, 2, 0, 0, 1, 1, 1, 2}},
        {"blackwell_gemm_m64", {3, 0, 1, 4, 1, 1, 2, 0}},
        {"blackwell_gemm_m128", {3, 0, 1, 4, 1, 1, 2, 0}},
        {"blackwell_gemm_tmem_a", {4, 0, 2, 5, 0, 0, 2, 0}},
        {"blackwell_gemm_warp_specialized", {4, 0, 1, 5, 1, 1, 2, 0}}};
    for (const Program& program : all_programs()) {
        CAPTURE(program.name);
        CHECK(counts(program, instructions) == expected.at(program.name));
    }
}

TEST_CASE("every fault changes what is run") {
    for (const Program& program : all_programs()) {
        CAPTURE(program.name);
        std::set<std::string> names;
        const auto arguments = [&](const Settings& settings) {
            const Plan plan = program.plan(program.shapes.front(), settings);
            std::string text;
            for (const Argument& argument : plan.launches.front().arguments) {
                if (const auto* value = std::get_if<ValueArgument>(&argument)) {
                    for (const std::byte byte : value->bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
                } else if (const auto* map = std::get_if<TensorMapArgument>(&argument)) {
                    text += fmt::format(" swizzle {} ", static_cast<int>(map->swizzle));
                }
            }
            return text;
        };
        for (const Fault& fault : faults_of(program)) {
            CAPTURE(fault.name);
            CHECK(names.insert(fault.name).second);
            const bool edited = edited_ptx(program.module().ptx, program.name, fault.edits) != program.module().ptx;
            CHECK(edited != fault.edits.empty());
            Settings settings = program.settings;
            if (fault.change) fault.change(settings);
            CHECK((arguments(settings) != arguments(program.settings)) == static_cast<bool>(fault.change));
            CHECK((fault.change || !fault.edits.empty()));
        }
    }
}

TEST_CASE("the H200 ran every fault of Hopper's programs, and lets some pass") {
    std::ifstream file(BLOCK_ATTENTION_H200_RESULTS);
    std::set<std::string> recorded;
    std::map<std::string, int> seen;
    const auto h200 = nlohmann::json::parse(file);
    for (const auto& row : h200.at("faults")) {
        recorded.insert(fmt::format("{}: {}", std::string(row.at("program")), std::string(row.at("fault"))));
        ++seen[row.at("seen")];
    }
    std::set<std::string> known;
    for (const Program& program : all_programs()) {
        if (program.architecture != 90) continue;
        for (const Fault& fault : faults_of(program)) known.insert(fmt::format("{}: {}", program.name, fault.name));
    }
    CHECK(recorded == known);
    // A removed wait, fence or barrier that the hardware forgives is what the simulator is for.
    CHECK(seen["right"] == 15);
    CHECK(seen["wrong"] == 29);
    CHECK(seen["hangs"] + seen["launch failure"] == 11);
}

TEST_SUITE("simulated") {
    /// How a run betrayed its fault; empty if it did not.
    std::string symptom(const Outcome& outcome, const Product& product) {
        for (const Finding& finding : outcome.findings) {
            if (finding.severity == Severity::error) return fmt::format("finding: {}", finding.rule);
        }
        if (!outcome.death.empty()) return outcome.death;
        const auto mismatch = find_mismatch(product, outcome.c);
        return mismatch ? "wrong: " + *mismatch : "";
    }

    TEST_CASE("no fault goes unnoticed but the lack of fence.proxy and wgmma.fence") {
        // Some faults show under few schedules: more are run until one does.
        constexpr std::uint64_t kSchedules = 3;
        constexpr std::uint64_t kMostSchedules = 40;
        for (const Program& program : all_programs()) {
            const Product product = make_product(program, program.shapes.front(), Input::integers);
            for (const Fault& fault : faults_of(program)) {
                Settings settings = program.settings;
                if (fault.change) fault.change(settings);
                const std::string ptx = edited_ptx(program.module().ptx, program.name, fault.edits);
                const KernelModule edited{program.module().name, program.module().source, ptx, {}};
                Plan plan = program.plan(product.shape, settings);
                plan.launches.front().module = &edited;

                std::map<std::string, int> symptoms;
                int noticed = 0;
                std::uint64_t run = 0;
                const std::uint64_t most = goes_unnoticed(fault) ? kSchedules : kMostSchedules;
                for (std::uint64_t seed = 1; seed <= kSchedules || (noticed == 0 && seed <= most); ++seed) {
                    ++run;
                    const auto device = open_simulator(program, seed);
                    const std::string seen = symptom(run_product(*device, plan, product), product);
                    ++symptoms[seen.empty() ? "nothing" : seen];
                    noticed += seen.empty() ? 0 : 1;
                }
                std::string row = fmt::format("| {} | {} | {}/{} |", program.name, fault.name, noticed, run);
                for (const auto& [seen, times] : symptoms) row += fmt::format(" {} x {};", times, seen);
                MESSAGE(row);
                CHECK_MESSAGE((noticed > 0) != goes_unnoticed(fault), row);
            }
        }
    }
}

}  // namespace
}  // namespace block_attention::programs
