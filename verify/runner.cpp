#include "verify/runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>

#include "reference/oracle.h"
#include "reference/parallel.h"
#include "verify/device_tensors.h"
#include "verify/text.h"
#include "verify/witness.h"

namespace block_attention {
namespace {

/// Seconds since the last call.
class Stopwatch {
  public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void run_host_stage(const Stage& stage, const Problem& problem, const Addresses& addresses) {
    Problem on_device = problem;
    for (const auto& operands : {problem.inputs(), problem.outputs()}) {
        for (const Operand operand : operands) {
            const DevicePointer address = addresses[static_cast<std::size_t>(operand)];
            on_device.view(operand).data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
        }
    }
    stage.run_on_host(on_device);
}

/// The bits of one device's output, kept for the next device.
struct KeptOutput {
    std::string device;
    AlignedMemory bytes;
};

std::string hex_of(std::span<const std::byte> span, std::int64_t place, std::int64_t size) {
    std::string digits = "0x";
    for (std::int64_t i = size; i-- > 0;) {
        digits += fmt::format("{:02x}", std::to_integer<unsigned>(span[static_cast<std::size_t>(place * size + i)]));
    }
    return digits;
}

BitComparison compare_bits(const Tensors& tensors, Operand operand, const KeptOutput& kept) {
    const std::span<const std::byte> bytes = tensors.span(operand);
    const std::span<const std::byte> other = kept.bytes.bytes();
    const std::int64_t size = size_of(tensors.problem().view(operand).dtype);
    std::atomic<std::int64_t> differing{0};
    std::atomic<std::int64_t> first{std::numeric_limits<std::int64_t>::max()};
    constexpr std::int64_t kChunk = std::int64_t{1} << 20;
    tensors.footprint(operand).for_each_run([&](ElementRange run) {
        parallel_for(tiles_in(run.end - run.begin, kChunk), [&](std::int64_t chunk) {
            const std::int64_t begin = run.begin + chunk * kChunk;
            const std::int64_t end = std::min(run.end, begin + kChunk);
            for (std::int64_t place = begin; place < end; ++place) {
                if (std::memcmp(bytes.data() + place * size, other.data() + place * size,
                                static_cast<std::size_t>(size)) == 0) {
                    continue;
                }
                ++differing;
                std::int64_t seen = first;
                while (place < seen && !first.compare_exchange_weak(seen, place)) {
                }
            }
        });
    });
    BitComparison result{
        .device = kept.device, .elements = tensors.footprint(operand).places(), .differing = differing, .first = {}};
    if (differing > 0) {
        result.first =
            fmt::format("{} at {}: {} instead of {}", name_of(operand), element_at(tensors.problem(), operand, first),
                        hex_of(bytes, first, size), hex_of(other, first, size));
    }
    return result;
}

/// Runs one stage on one device once: uploads, runs, downloads the outputs into the tensors, checks what surrounds
/// them.
void run_once(const Tensors& tensors, const Stage& stage, const Plan& plan, Device& device, bool checks_bounds,
              Result& result) {
    const Problem& problem = tensors.problem();
    Stopwatch stopwatch;
    const DeviceTensors on_device(device, checks_bounds, tensors);
    result.seconds.set_up += stopwatch.lap();
    try {
        if (stage.run_on_host != nullptr) {
            run_host_stage(stage, problem, on_device.addresses());
        } else {
            run_plan(device, plan, on_device.addresses());
        }
    } catch (...) {
        result.findings = device.take_findings();  // they often say why the kernel died
        throw;
    }
    result.findings = device.take_findings();
    result.seconds.run += stopwatch.lap();
    for (const Operand operand : problem.outputs()) {
        on_device.download_output(operand);
        merge(result.faults, check_output(tensors, operand));
    }
    for (const Operand operand : problem.inputs()) merge(result.faults, on_device.check_input(operand));
    result.seconds.compare += stopwatch.lap();
}

/// "3 bytes of o differ from seed 1's, first o at head 1: 0x3c00 instead of 0x3c01".
std::string describe(const ScheduleOutcome& outcome, const Schedules& schedules, const Problem& problem) {
    const ScheduleDifference& difference = *outcome.difference;
    const Operand operand = problem.outputs()[difference.output];
    const std::int64_t size = size_of(problem.view(operand).dtype);
    const std::int64_t place = static_cast<std::int64_t>(difference.first_byte) / size;
    return fmt::format("{} of {} differ from seed {}'s, first at {}: {} instead of {}",
                       counted(static_cast<std::int64_t>(difference.bytes), "byte"), name_of(operand),
                       schedules.first_seed, element_at(problem, operand, place),
                       hex_of(outcome.other_outputs[difference.output], place, size),
                       hex_of(outcome.first.outputs[difference.output], place, size));
}

/// Runs one stage on one device under every schedule. The tensors hold the first run's output then.
void run_schedules_of(const Tensors& tensors, const Stage& stage, const Plan& plan, const NamedDevice& at,
                      const Schedules& schedules, Result& result) {
    const Problem& problem = tensors.problem();
    const ScheduleOutcome outcome = run_schedules(schedules, [&](std::uint64_t seed) {
        const std::unique_ptr<Device> other = seed == schedules.first_seed ? nullptr : at.device->with_schedule(seed);
        ScheduledRun run;
        try {
            run_once(tensors, stage, plan, other ? *other : *at.device, at.checks_bounds, result);
        } catch (const std::exception& failure) {
            result.error = failure.what();
        }
        run.faulty = result.error || !result.findings.empty() || !result.faults.empty();
        for (const Operand operand : problem.outputs()) {
            const std::span<const std::byte> bytes = tensors.span(operand);
            run.outputs.emplace_back(bytes.begin(), bytes.end());
        }
        return run;
    });
    result.schedules = {.schedules = schedules,
                        .runs = outcome.runs,
                        .seed = outcome.seed,
                        .difference = outcome.difference ? describe(outcome, schedules, problem) : ""};
    for (std::size_t i = 0; i < outcome.first.outputs.size(); ++i) {
        const std::vector<std::byte>& bytes = outcome.first.outputs[i];
        std::copy(bytes.begin(), bytes.end(), tensors.span(problem.outputs()[i]).begin());
    }
}

/// Runs one stage on one device and judges what it left there.
void run_and_judge(const Tensors& tensors, const Stage& stage, const Plan& plan, const NamedDevice& at,
                   const Schedules& schedules, Result& result) {
    const Problem& problem = tensors.problem();
    if (schedules.count > 1 && at.device->with_schedule(schedules.first_seed) != nullptr) {
        run_schedules_of(tensors, stage, plan, at, schedules, result);
        if (result.error && result.schedules->runs == 1) return;
    } else {
        run_once(tensors, stage, plan, *at.device, at.checks_bounds, result);
    }
    Stopwatch stopwatch;
    result.comparison =
        &stage == &oracle_stage() ? compare_with_witness(problem) : compare_forward(problem, stage.arithmetic(problem));
    result.seconds.compare += stopwatch.lap();
}

/// Compares the output with the kept one, or keeps it if it is the first and others follow.
void match_bits(const Tensors& tensors, bool others_follow, std::optional<KeptOutput>& kept, Result& result) {
    const Operand output = tensors.problem().outputs().front();
    if (kept) {
        result.bits = compare_bits(tensors, output, *kept);
    } else if (others_follow) {
        const std::span<const std::byte> bytes = tensors.span(output);
        kept.emplace(KeptOutput{result.device, AlignedMemory(bytes.size())});
        if (!bytes.empty()) std::memcpy(kept->bytes.bytes().data(), bytes.data(), bytes.size());
    }
}

/// Why a device cannot run the plan's kernels, or nothing.
std::optional<std::string> device_refusal(const Plan& plan, const Device& device) {
    for (const Launch& launch : plan.launches) {
        if (launch.module == nullptr) continue;
        if (auto reason = cannot_run(device.properties(), *launch.module)) return reason;
    }
    return std::nullopt;
}

void run_stage(const LoadedCase& loaded, const Stage& stage, std::span<const NamedDevice> devices,
               const RunHooks& hooks, const Schedules& schedules) {
    const Problem& problem = loaded.tensors->problem();
    const PlanResult planned = stage.plan(problem);
    const bool on_host = stage.run_on_host != nullptr;
    std::optional<KeptOutput> kept;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const NamedDevice& device = devices[i];
        if (device.is_host != on_host) continue;
        Result result;
        result.case_name = loaded.name;
        result.stage = stage.name;
        result.device = device.name;
        result.shape = shape_of(problem);
        if (const auto* refusal = std::get_if<Refusal>(&planned)) {
            result.refusal = refusal->reason;
        } else if (auto reason = device_refusal(std::get<Plan>(planned), *device.device)) {
            result.refusal = std::move(*reason);
        } else {
            if (hooks.before) hooks.before(stage.name, device.name);
            try {
                run_and_judge(*loaded.tensors, stage, std::get<Plan>(planned), device, schedules, result);
                const bool has_output = !result.error || result.schedules->runs > 1;
                if (has_output) match_bits(*loaded.tensors, i + 1 < devices.size(), kept, result);
                if (has_output && hooks.output) hooks.output(stage.name, device.name, *loaded.tensors);
            } catch (const std::exception& failure) {
                result.error = failure.what();
            }
        }
        hooks.after(std::move(result));
    }
}

}  // namespace

void run_case(const LoadedCase& loaded, std::span<const Stage* const> stages, std::span<const NamedDevice> devices,
              const RunHooks& hooks, const Schedules& schedules) {
    for (const Stage* stage : stages) run_stage(loaded, *stage, devices, hooks, schedules);
}

std::optional<std::string> refusal_of(const Stage& stage, const Problem& problem) {
    const PlanResult planned = stage.plan(problem);
    const auto* refusal = std::get_if<Refusal>(&planned);
    return refusal == nullptr ? std::nullopt : std::optional(refusal->reason);
}

}  // namespace block_attention
