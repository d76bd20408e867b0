#include "verify/storage_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>

#include "reference/parallel.h"
#include "reference/tiles.h"

namespace block_attention {
namespace {

/// How many and which first, found on all cores.
class FirstAndCount {
  public:
    void add(std::int64_t place) {
        ++count_;
        std::int64_t first = first_;
        while (place < first && !first_.compare_exchange_weak(first, place)) {
        }
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] std::int64_t first() const { return first_; }

  private:
    std::atomic<std::uint64_t> count_{0};
    std::atomic<std::int64_t> first_{std::numeric_limits<std::int64_t>::max()};
};

/// Where a byte of an allocation lies, in words: "12 bytes before the first element of k".
std::string describe_byte(const Tensors& tensors, Operand operand, std::int64_t byte) {
    const auto begin = static_cast<std::int64_t>(tensors.begin());
    const auto end = begin + static_cast<std::int64_t>(tensors.span(operand).size());
    const std::string_view name = name_of(operand);
    if (byte < begin) return fmt::format("{} bytes before the first element of {}", begin - byte, name);
    if (byte >= end) return fmt::format("{} bytes behind the last element of {}", byte - end, name);
    const std::int64_t size = size_of(tensors.problem().view(operand).dtype);
    return fmt::format("at byte {} of {}, place {} of its span", byte - begin, name, (byte - begin) / size);
}

bool in_guard_zone(const Tensors& tensors, Operand operand, std::int64_t byte) {
    const auto begin = static_cast<std::int64_t>(tensors.begin());
    return byte < begin || byte >= begin + static_cast<std::int64_t>(tensors.span(operand).size());
}

StorageFault overwritten(const Tensors& tensors, Operand operand, std::int64_t byte, std::uint64_t count) {
    if (in_guard_zone(tensors, operand, byte)) {
        return {"guard-zone", operand,
                fmt::format("the guard zone of {} was written, first {}", name_of(operand),
                            describe_byte(tensors, operand, byte)),
                count};
    }
    return {"gap", operand,
            fmt::format("memory between the elements of {} was written, first {}", name_of(operand),
                        describe_byte(tensors, operand, byte)),
            count};
}

/// Counts the bytes of [begin, end) that are no longer poison.
void find_written(std::span<const std::byte> bytes, std::int64_t begin, std::int64_t end, FirstAndCount& written) {
    for (std::int64_t i = begin; i < end; ++i) {
        if (bytes[static_cast<std::size_t>(i)] != kPoison) written.add(i);
    }
}

void find_unwritten(std::span<const std::byte> span, std::int64_t size, ElementRange run, FirstAndCount& unwritten) {
    constexpr std::int64_t kChunk = std::int64_t{1} << 20;
    parallel_for(tiles_in(run.end - run.begin, kChunk), [&](std::int64_t chunk) {
        const std::int64_t begin = run.begin + chunk * kChunk;
        for (std::int64_t place = begin; place < std::min(run.end, begin + kChunk); ++place) {
            const std::byte* element = span.data() + place * size;
            if (std::all_of(element, element + size, [](std::byte b) { return b == kPoison; })) unwritten.add(place);
        }
    });
}

}  // namespace

std::vector<StorageFault> check_output(const Tensors& tensors, Operand operand) {
    const std::span<const std::byte> all = tensors.allocation(operand);
    const std::span<const std::byte> span = tensors.span(operand);
    const auto begin = static_cast<std::int64_t>(tensors.begin());
    const std::int64_t size = size_of(tensors.problem().view(operand).dtype);
    const Footprint& footprint = tensors.footprint(operand);

    FirstAndCount guards;
    find_written(all, 0, begin, guards);
    find_written(all, begin + static_cast<std::int64_t>(span.size()), static_cast<std::int64_t>(all.size()), guards);
    FirstAndCount gaps;
    footprint.for_each_gap(
        [&](ElementRange gap) { find_written(all, begin + gap.begin * size, begin + gap.end * size, gaps); });
    FirstAndCount unwritten;
    footprint.for_each_run([&](ElementRange run) { find_unwritten(span, size, run, unwritten); });

    std::vector<StorageFault> faults;
    for (const FirstAndCount* written : {&guards, &gaps}) {
        if (written->count() > 0) faults.push_back(overwritten(tensors, operand, written->first(), written->count()));
    }
    if (unwritten.count() > 0) {
        faults.push_back(
            {"unwritten", operand,
             fmt::format("{} of {} elements of {} were never written, first {}", unwritten.count(), footprint.places(),
                         name_of(operand), element_at(tensors.problem(), operand, unwritten.first())),
             unwritten.count()});
    }
    return faults;
}

std::vector<StorageFault> check_input(const Tensors& tensors, Operand operand, std::span<const std::byte> device,
                                      std::size_t begin) {
    const std::byte* host = tensors.allocation(operand).data() + begin;
    if (std::memcmp(device.data(), host, device.size()) == 0) return {};
    FirstAndCount guards;
    FirstAndCount gaps;
    FirstAndCount elements;
    const TensorView& view = tensors.problem().view(operand);
    const std::int64_t size = size_of(view.dtype);
    const auto first_byte = static_cast<std::int64_t>(tensors.begin());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device[i] == host[i]) continue;
        const auto byte = static_cast<std::int64_t>(begin + i);
        if (in_guard_zone(tensors, operand, byte)) {
            guards.add(byte);
        } else if (const std::int64_t place = (byte - first_byte) / size; tensors.footprint(operand).contains(place)) {
            elements.add(place);
        } else {
            gaps.add(byte);
        }
    }
    std::vector<StorageFault> faults;
    for (const FirstAndCount* written : {&guards, &gaps}) {
        if (written->count() > 0) faults.push_back(overwritten(tensors, operand, written->first(), written->count()));
    }
    if (elements.count() > 0) {
        faults.push_back({"input-changed", operand,
                          fmt::format("the input {} was changed, first at {}", name_of(operand),
                                      element_at(tensors.problem(), operand, elements.first())),
                          elements.count()});
    }
    return faults;
}

void merge(std::vector<StorageFault>& faults, std::vector<StorageFault> more) {
    for (StorageFault& fault : more) {
        const auto same = std::find_if(faults.begin(), faults.end(), [&](const StorageFault& other) {
            return other.rule == fault.rule && other.operand == fault.operand;
        });
        if (same == faults.end()) {
            faults.push_back(std::move(fault));
        } else {
            same->occurrences += fault.occurrences;
        }
    }
}

}  // namespace block_attention
