#include "verify/tensors.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "reference/parallel.h"
#include "reference/tiles.h"
#include "verify/cases/case.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

constexpr std::size_t kAlignment = 4096;

std::vector<Operand> operands_of(const Problem& problem) {
    auto operands = problem.inputs();
    const auto outputs = problem.outputs();
    operands.insert(operands.end(), outputs.begin(), outputs.end());
    return operands;
}

void fill_with_poison(std::span<std::byte> bytes) {
    constexpr std::int64_t kChunk = std::int64_t{1} << 24;
    const auto size = static_cast<std::int64_t>(bytes.size());
    parallel_for(tiles_in(size, kChunk), [&](std::int64_t chunk) {
        const std::int64_t begin = chunk * kChunk;
        std::memset(bytes.data() + begin, static_cast<int>(kPoison),
                    static_cast<std::size_t>(std::min(kChunk, size - begin)));
    });
}

/// Bytes that the operands of a problem take with their guard zones, or nothing if that overflows.
std::optional<std::int64_t> bytes_of(const Problem& problem) {
    std::int64_t total = 0;
    for (const Operand operand : operands_of(problem)) {
        const auto bytes = byte_span(problem, operand);
        if (!bytes || __builtin_add_overflow(total, *bytes, &total)) return std::nullopt;
        if (__builtin_add_overflow(total, static_cast<std::int64_t>(2 * kGuardBytes), &total)) return std::nullopt;
    }
    return total;
}

}  // namespace

AlignedMemory::AlignedMemory(std::size_t bytes) : size_(bytes) {
    const std::size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
    if (!memory_) throw std::bad_alloc();
}

void AlignedMemory::Free::operator()(std::byte* memory) const {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
}

void check_memory(const Problem& problem) {
    const auto bytes = bytes_of(problem);
    const auto machine = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
    if (bytes && *bytes <= machine) return;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    throw UsageError(fmt::format(
        "the tensors of {} take {:.1f} GiB, more than the {:.1f} GiB of this machine; choose fewer sequences, heads or "
        "tokens",
        describe(problem), bytes ? static_cast<double>(*bytes) / kGiB : HUGE_VAL, static_cast<double>(machine) / kGiB));
}

Tensors::Tensors(Problem problem, std::int64_t shift)
    : problem_(std::move(problem)),
      shift_bytes_(static_cast<std::size_t>(shift * size_of(problem_.dtype))),
      operands_(operands_of(problem_)) {
    check_memory(problem_);
    for (const Operand operand : operands_) {
        const auto bytes = static_cast<std::size_t>(byte_span(problem_, operand).value());
        AlignedMemory& memory = memory_[static_cast<std::size_t>(operand)];
        memory = AlignedMemory(kGuardBytes + shift_bytes_ + bytes + kGuardBytes);
        problem_.view(operand).data = memory.bytes().data() + begin();
    }
    if (const auto fault = validate(problem_)) throw UsageError(*fault);
    for (const Operand operand : operands_) {
        footprints_[static_cast<std::size_t>(operand)].emplace(problem_, operand);
    }
}

std::span<std::byte> Tensors::allocation(Operand operand) const {
    return memory_[static_cast<std::size_t>(operand)].bytes();
}

std::span<std::byte> Tensors::span(Operand operand) const {
    const std::span<std::byte> all = allocation(operand);
    return all.subspan(begin(), all.size() - begin() - kGuardBytes);
}

const Footprint& Tensors::footprint(Operand operand) const {
    return footprints_[static_cast<std::size_t>(operand)].value();
}

void Tensors::poison(Operand operand) const { fill_with_poison(allocation(operand)); }

void Tensors::poison_surroundings(Operand operand) const {
    const std::span<std::byte> all = allocation(operand);
    const std::span<std::byte> elements = span(operand);
    const auto size = static_cast<std::size_t>(size_of(problem_.view(operand).dtype));
    fill_with_poison(all.first(begin()));
    fill_with_poison(all.last(kGuardBytes));
    footprint(operand).for_each_gap([&](ElementRange gap) {
        const std::size_t first = static_cast<std::size_t>(gap.begin) * size;
        const std::size_t bytes = static_cast<std::size_t>(gap.end - gap.begin) * size;
        std::memset(elements.data() + first, static_cast<int>(kPoison), bytes);
    });
}

}  // namespace block_attention
