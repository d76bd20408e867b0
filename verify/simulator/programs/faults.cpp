#include "verify/simulator/programs/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace block_attention::programs {
namespace {

using simulator::InstructionDescriptor;
using simulator::Major;
using simulator::SwizzleMode;
using Faults = std::vector<Fault>;

constexpr std::string_view kTryWait = "mbarrier.try_wait.";

/// Start and end of a kernel's text, up to the next kernel's.
std::pair<std::size_t, std::size_t> text_of(std::string_view ptx, std::string_view kernel) {
    const std::size_t begin = ptx.find(fmt::format(".entry {}(", kernel));
    if (begin == std::string_view::npos) throw std::invalid_argument(fmt::format("no kernel {} in the PTX", kernel));
    return {begin, std::min(ptx.find(".entry ", begin + 1), ptx.size())};
}

/// A try_wait that has nothing to wait for. Its predicate is the first operand.
std::string passed_wait(std::string_view line) {
    const std::size_t operand = line.find_first_of(" \t", line.find(kTryWait)) + 1;
    return fmt::format("setp.eq.u32 {}, 0, 0;", line.substr(operand, line.find(',') - operand));
}

/// The line, which ends with a line feed, after the edit.
std::string edited_line(std::string_view line, const PtxEdit& edit) {
    if (edit.part.empty()) {
        return (edit.instruction == kTryWait ? passed_wait(line) : std::string(edit.replacement)) + '\n';
    }
    const std::size_t at = line.find(edit.part);
    if (at == std::string_view::npos) throw std::invalid_argument(fmt::format("no '{}' in '{}'", edit.part, line));
    return std::string(line).replace(at, edit.part.size(), edit.replacement);
}

Fault setting(std::string name, std::function<void(Settings&)> change) {
    return {std::move(name), std::move(change), {}};
}

Fault removed(std::string name, std::string_view instruction, int occurrence = 0) {
    return {std::move(name), {}, {{instruction, occurrence, "", ""}}};
}

void append(Faults& faults, const Faults& more) { faults.insert(faults.end(), more.begin(), more.end()); }

/// What each mbarrier.try_wait of a program's PTX waits for, in the order in which nvcc writes them.
std::vector<std::string_view> waits_of(const Program& program) {
    if (program.architecture == 90) return {"an empty stage", "a full stage"};
    if (program.name == "blackwell_gemm_tmem_a") {
        return {"an empty stage of B", "a full stage", "an empty stage of A", "the sums"};
    }
    if (program.name == "blackwell_gemm_warp_specialized") {
        return {"an empty stage", "an empty accumulator", "a full stage", "the sums"};
    }
    return {"an empty stage", "a full stage", "the sums"};
}

/// A ring of stages that tensor copies of B fill.
Faults pipeline_faults() {
    constexpr std::uint32_t kBox = 64 * 64 * 2;  // bytes of a column block of B
    return {setting("parity of empty stages flipped", [](Settings& s) { s.empty_parity ^= 1; }),
            setting("parity of full stages flipped", [](Settings& s) { s.full_parity ^= 1; }),
            setting("expect_tx a box short", [](Settings& s) { s.expect_bytes -= kBox; }),
            setting("expect_tx a box over", [](Settings& s) { s.expect_bytes += kBox; }),
            setting("B copied without swizzle", [](Settings& s) { s.b_swizzle = Swizzle::none; }),
            setting("B read with 64B swizzle", [](Settings& s) { s.b.swizzle = SwizzleMode::b64; }),
            setting("B read without swizzle", [](Settings& s) { s.b.swizzle = SwizzleMode::none; }),
            setting("LBO of B halved", [](Settings& s) { s.b.leading /= 2; }),
            setting("SBO of B halved", [](Settings& s) { s.b.stride /= 2; })};
}

/// A by tensor copies to shared memory. Its LBO has no effect on a swizzled K-major operand.
Faults shared_a_faults() {
    return {setting("A copied without swizzle", [](Settings& s) { s.a_swizzle = Swizzle::none; }),
            setting("A read with 64B swizzle", [](Settings& s) { s.a.swizzle = SwizzleMode::b64; }),
            setting("A read without swizzle", [](Settings& s) { s.a.swizzle = SwizzleMode::none; }),
            setting("SBO of A halved", [](Settings& s) { s.a.stride /= 2; })};
}

/// C through shared memory and a tensor copy.
Faults tensor_store_faults() {
    return {setting("C copied without swizzle", [](Settings& s) { s.c_swizzle = Swizzle::none; }),
            removed("no fence between the writes of C and its copy", "fence.proxy.async."),
            removed("no wait until the copy of C has read it", "cp.async.bulk.wait_group.read")};
}

/// What orders wgmma, and the fields that are its modifiers and immediates.
Faults wgmma_faults() {
    constexpr std::string_view kProduct = "wgmma.mma_async.";
    constexpr std::string_view kFlags = "p, 1, 1, 0, 1;";  // signs of A and B, transposition of A and B
    constexpr int kAll = PtxEdit::kEverywhere;
    return {removed("no wait for the products of the step before", "wgmma.wait_group.", 0),
            removed("no wait for the last products", "wgmma.wait_group.", 1),
            removed("no wgmma.fence", "wgmma.fence."),
            removed("no barrier between the writes of C and its copy", "bar.sync %"),
            {"A negated", {}, {{kProduct, kAll, kFlags, "p, -1, 1, 0, 1;"}}},
            {"A transposed", {}, {{kProduct, kAll, kFlags, "p, 1, 1, 1, 1;"}}},
            {"B not transposed", {}, {{kProduct, kAll, kFlags, "p, 1, 1, 0, 0;"}}},
            {"factors of the other type", {}, {{kProduct, kAll, ".f32.bf16.bf16", ".f32.f16.f16"}}}};
}

Faults cluster_faults() {
    constexpr std::string_view kArrive = "barrier.cluster.arrive.";
    constexpr std::string_view kWait = "barrier.cluster.wait.";
    return {{"no cluster barrier at the start", {}, {{kArrive, 0, "", ""}, {kWait, 0, "", ""}}},
            {"no cluster barrier at the end", {}, {{kArrive, 1, "", ""}, {kWait, 1, "", ""}}}};
}

/// What orders Tensor Memory, and the fields of the instruction descriptor.
Faults tcgen05_faults(const Program& program) {
    using Type = InstructionDescriptor::Multiplicand;
    const Type other = program.factors == DType::bf16 ? Type::f16 : Type::bf16;
    Faults faults{
        removed("no barrier before Tensor Memory is given back", "bar.sync \t0", 1),
        removed("no tcgen05.wait::ld", "tcgen05.wait::ld."),
        setting("parity of the sums flipped", [](Settings& s) { s.accumulator_full_parity ^= 1; }),
        setting("M 64 for 128, or 128 for 64", [](Settings& s) { s.instruction.m = 64 + 128 - s.instruction.m; }),
        setting("N halved", [](Settings& s) { s.instruction.n /= 2; }),
        setting("A of the other type", [other](Settings& s) { s.instruction.a = other; }),
        setting("B of the other type", [other](Settings& s) { s.instruction.b = other; }),
        setting("A negated", [](Settings& s) { s.instruction.negate_a = true; }),
        setting("B negated", [](Settings& s) { s.instruction.negate_b = true; }),
        setting("A transposed", [](Settings& s) { s.instruction.major_a = Major::mn; }),
        setting("B not transposed", [](Settings& s) { s.instruction.major_b = Major::k; }),
        setting("sums in fp16", [](Settings& s) { s.instruction.d = InstructionDescriptor::Accumulator::f16; })};
    // The first tcgen05.fence::after follows the allocation; every wait but the loading warp's has one.
    const auto waits = waits_of(program);
    for (std::size_t i = 1; i < waits.size(); ++i) {
        // Before it multiplies, that warp also waits for a full stage, and the fence there orders both.
        if (waits[i] == "an empty accumulator") continue;
        faults.push_back(removed(fmt::format("no tcgen05.fence after the wait for {}", waits[i]),
                                 "tcgen05.fence::after_thread_sync", static_cast<int>(i)));
    }
    return faults;
}

}  // namespace

bool goes_unnoticed(const Fault& fault) {
    return !fault.change && std::ranges::all_of(fault.edits, [](const PtxEdit& edit) {
        const bool removes = edit.part.empty();
        return removes && (edit.instruction.starts_with("fence.proxy.") || edit.instruction == "wgmma.fence.");
    });
}

std::string edited_ptx(std::string_view ptx, std::string_view kernel, const std::vector<PtxEdit>& edits) {
    const auto [begin, end] = text_of(ptx, kernel);
    std::string edited(ptx.substr(0, begin));
    std::vector<int> seen(edits.size(), 0);
    for (std::size_t at = begin; at < end;) {
        const std::size_t next = std::min(ptx.find('\n', at), end - 1) + 1;
        std::string line(ptx.substr(at, next - at));
        for (std::size_t i = 0; i < edits.size(); ++i) {
            if (line.find(edits[i].instruction) == std::string::npos) continue;
            const int occurrence = seen[i]++;
            if (edits[i].occurrence == PtxEdit::kEverywhere || edits[i].occurrence == occurrence) {
                line = edited_line(line, edits[i]);
            }
        }
        edited += line;
        at = next;
    }
    for (std::size_t i = 0; i < edits.size(); ++i) {
        if (seen[i] <= std::max(edits[i].occurrence, 0)) {
            throw std::invalid_argument(fmt::format("{} has '{}' {} times, too few to edit number {}", kernel,
                                                    edits[i].instruction, seen[i], edits[i].occurrence));
        }
    }
    return edited.append(ptx.substr(end));
}

std::vector<Fault> faults_of(const Program& program) {
    const bool clustered = program.name == "hopper_gemm_cluster";
    const bool tmem_a = program.name == "blackwell_gemm_tmem_a";
    const bool specialized = program.name == "blackwell_gemm_warp_specialized";
    Faults faults;
    const auto waits = waits_of(program);
    for (std::size_t i = 0; i < waits.size(); ++i) {
        faults.push_back(removed(fmt::format("no wait for {}", waits[i]), kTryWait, static_cast<int>(i)));
    }
    append(faults, pipeline_faults());
    if (!clustered) faults.push_back(removed("no barrier after the initialisation", "bar.sync \t0"));
    if (!tmem_a) append(faults, shared_a_faults());
    if (!tmem_a) append(faults, tensor_store_faults());
    append(faults, program.architecture == 90 ? wgmma_faults() : tcgen05_faults(program));
    if (clustered) append(faults, cluster_faults());
    // The second tcgen05.fence::before precedes the arrival that hands over what a tcgen05.ld or st has touched.
    constexpr std::string_view kFenceBefore = "tcgen05.fence::before_thread_sync";
    if (tmem_a) {
        faults.push_back(removed("no tcgen05.wait::st", "tcgen05.wait::st."));
        faults.push_back(removed("no tcgen05.fence before A is handed over", kFenceBefore, 1));
    }
    if (specialized) {
        faults.push_back(removed("no tcgen05.fence before the accumulator is handed back", kFenceBefore, 1));
        faults.push_back(
            setting("parity of empty accumulators flipped", [](Settings& s) { s.accumulator_empty_parity ^= 1; }));
    }
    return faults;
}

}  // namespace block_attention::programs
