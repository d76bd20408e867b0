#include "verify/simulator/engines/tensor_memory_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace block_attention::simulator {

namespace {

std::size_t thread_of(const Issuer& issuer) { return std::size_t{issuer.warp->index()} * kWarpSize + issuer.lane; }

/// The first of the times after another one, or 0.
std::uint64_t first_after(const std::vector<std::uint64_t>& times, std::uint64_t time) {
    const auto found = std::ranges::upper_bound(times, time);
    return found == times.end() ? 0 : *found;
}

std::size_t index_of(Tcgen05Kind collective) { return collective == Tcgen05Kind::load ? 0 : 1; }

constexpr std::string_view kNoFenceAfter =
    "no tcgen05.fence::after_thread_sync follows the wait for that, which lets this instruction run ahead of it";

}  // namespace

void TensorMemoryOrder::clear(std::size_t warps) {
    now_ = 0;
    threads_.assign(warps * kWarpSize, {});
    warps_.assign(warps, {});
    afters_.assign(warps * kWarpSize, 0);
    entries_.assign(1, {});
    cells_.assign(std::size_t{kSixteens} * kTensorMemoryColumns, {});
}

template <typename Visit>
void TensorMemoryOrder::for_each_cell(std::span<const TensorMemoryRegion> regions, Visit visit) {
    for (const TensorMemoryRegion& region : regions) {
        for (std::uint32_t sixteen = 0; sixteen < kSixteens; ++sixteen) {
            if ((region.sixteens >> sixteen & 1) == 0) continue;
            Cell* cells = cells_.data() + std::size_t{sixteen} * kTensorMemoryColumns;
            for (std::uint32_t column = region.first; column < region.end; ++column) visit(cells[column]);
        }
    }
}

std::string TensorMemoryOrder::access(const TensorMemoryAccess& access, std::span<const TensorMemoryRegion> reads,
                                      std::span<const TensorMemoryRegion> writes) {
    std::string fault;
    // Neighbouring cells mostly have the same history.
    std::uint32_t checked = 0;
    const auto check = [&](std::uint32_t first, bool first_writes, bool second_writes) {
        if (first == 0 || first == checked || !fault.empty()) return;
        checked = first;
        const std::string missing = missing_between(entries_[first], access);
        if (!missing.empty()) fault = describe(entries_[first], first_writes, second_writes, missing);
    };
    for_each_cell(reads, [&](const Cell& cell) { check(cell.writer, true, false); });
    checked = 0;
    for_each_cell(writes, [&](const Cell& cell) { check(cell.writer, true, true); });
    checked = 0;
    for_each_cell(writes, [&](const Cell& cell) { check(cell.reader, false, true); });

    entries_.push_back({access, ++now_});
    const auto number = static_cast<std::uint32_t>(entries_.size() - 1);
    for_each_cell(reads, [&](Cell& cell) { cell.reader = number; });
    for_each_cell(writes, [&](Cell& cell) { cell = {number, 0}; });
    if (is_collective(access.kind)) {
        warps_[access.issuer.warp->index()].last_access[index_of(access.kind)] = now_;
    } else {
        threads_[thread_of(access.issuer)].last_access = now_;
    }
    return fault;
}

void TensorMemoryOrder::forget(std::uint32_t column, std::uint32_t columns) {
    const std::array<TensorMemoryRegion, 1> region{{{0xFF, column, column + columns}}};
    for_each_cell(region, [](Cell& cell) { cell = {}; });
}

void TensorMemoryOrder::commit(const Warp& warp, unsigned lane) {
    ++now_;
    Actor& actor = threads_[std::size_t{warp.index()} * kWarpSize + lane];
    for (Times* times : {&actor.commits, &actor.befores}) {
        if (times->empty() || times->back() < actor.last_access) times->push_back(now_);
    }
}

void TensorMemoryOrder::wait(const Warp& warp, Tcgen05Kind kind) {
    ++now_;
    WarpActor& actor = warps_[warp.index()];
    Times& waits = actor.waits[index_of(kind)];
    if (!waits.empty() && waits.back() > actor.last_access[index_of(kind)]) return;
    waits.push_back(now_);
    actor.last_wait = now_;
}

void TensorMemoryOrder::fence_before(const Warp& warp, LaneMask lanes) {
    ++now_;
    WarpActor& whole = warps_[warp.index()];
    if (whole.befores.empty() || whole.befores.back() < whole.last_wait) whole.befores.push_back(now_);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        Actor& actor = threads_[std::size_t{warp.index()} * kWarpSize + static_cast<unsigned>(std::countr_zero(left))];
        if (actor.befores.empty() || actor.befores.back() < actor.last_access) actor.befores.push_back(now_);
    }
}

void TensorMemoryOrder::fence_after(const Warp& warp, LaneMask lanes) {
    ++now_;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        afters_[std::size_t{warp.index()} * kWarpSize + static_cast<unsigned>(std::countr_zero(left))] = now_;
    }
}

std::uint64_t TensorMemoryOrder::last_fence_after(const TensorMemoryAccess& access) const {
    if (!is_collective(access.kind)) return afters_[thread_of(access.issuer)];
    const auto first = afters_.begin() + static_cast<std::ptrdiff_t>(access.issuer.warp->index() * kWarpSize);
    return *std::min_element(first, first + kWarpSize);
}

bool TensorMemoryOrder::pipelined(const TensorMemoryAccess& first, std::uint64_t first_time,
                                  const TensorMemoryAccess& second) const {
    bool pair = false;
    if (second.kind == Tcgen05Kind::multiply) {
        pair = first.kind == Tcgen05Kind::copy || first.kind == Tcgen05Kind::shift ||
               (first.kind == Tcgen05Kind::multiply && first.accumulator == second.accumulator && first.m == second.m &&
                first.n == second.n);
    } else if (second.kind == Tcgen05Kind::shift) {
        pair = first.kind == Tcgen05Kind::multiply;
    }
    if (!pair || (first.issuer.warp == second.issuer.warp && first.issuer.lane == second.issuer.lane)) return pair;
    const std::uint64_t before = first_after(threads_[thread_of(first.issuer)].befores, first_time);
    return before != 0 && last_fence_after(second) > before;
}

std::string TensorMemoryOrder::missing_between(const Entry& first, const TensorMemoryAccess& second) const {
    if (pipelined(first.access, first.time, second)) return {};
    const std::uint64_t after = last_fence_after(second);
    if (!is_collective(first.access.kind)) {
        const std::uint64_t commit = first_after(threads_[thread_of(first.access.issuer)].commits, first.time);
        if (commit == 0) return "its thread has not executed tcgen05.commit since";
        return after > commit ? "" : std::string(kNoFenceAfter);
    }
    const WarpActor& warp = warps_[first.access.issuer.warp->index()];
    const std::uint64_t wait = first_after(warp.waits[index_of(first.access.kind)], first.time);
    if (wait == 0) {
        return fmt::format("its warp has not executed tcgen05.wait::{} since",
                           first.access.kind == Tcgen05Kind::load ? "ld" : "st");
    }
    if (first.access.issuer.warp == second.issuer.warp) return {};
    const std::uint64_t before = first_after(warp.befores, wait);
    if (after <= (before == 0 ? wait : before)) return std::string(kNoFenceAfter);
    return before != 0 ? "" : "its warp has not executed tcgen05.fence::before_thread_sync since its wait for that";
}

std::string TensorMemoryOrder::describe(const Entry& first, bool first_writes, bool second_writes,
                                        const std::string& missing) const {
    const Issuer& issuer = first.access.issuer;
    const Program& program = issuer.warp->program();
    return fmt::format("it {} Tensor Memory that the instruction of {} {}, without what must come between: {}",
                       second_writes ? "writes" : "reads",
                       place_text(program, issuer.warp->index_of(*issuer.instruction)),
                       first_writes ? "writes" : "reads", missing);
}

}  // namespace block_attention::simulator
