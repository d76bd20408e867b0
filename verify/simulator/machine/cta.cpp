#include "verify/simulator/machine/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "verify/simulator/engines/tcgen05.h"
#include "verify/simulator/engines/wgmma.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"
#include "verify/simulator/machine/special_registers.h"

namespace block_attention::simulator {

namespace {

/// The distance of two lanes' local memories: an odd number of host cache lines, so that the lanes of a warp, which
/// mostly access the same local address, don't compete for the same sets of a cache.
std::uint32_t local_stride_of(std::uint32_t bytes) {
    constexpr std::uint32_t kLine = 64;
    const std::uint32_t lines = (bytes + kLine - 1) / kLine;
    return lines == 0 ? 0 : (lines | 1) * kLine;
}

unsigned warps_of(Dim3 block) { return static_cast<unsigned>((block.count() + kWarpSize - 1) / kWarpSize); }

}  // namespace

Dim3 Grid::cluster_id(std::uint64_t cta) const {
    const Dim3 clusters{grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
    return unflatten(cta / cluster.count(), clusters);
}

Dim3 Grid::cta_id(std::uint64_t cta) const {
    const Dim3 of_cluster = cluster_id(cta);
    const Dim3 in_cluster = unflatten(cta % cluster.count(), cluster);
    return {of_cluster.x * cluster.x + in_cluster.x, of_cluster.y * cluster.y + in_cluster.y,
            of_cluster.z * cluster.z + in_cluster.z};
}

Cta::Cta(Cluster& cluster, const Grid& grid, unsigned rank)
    : cluster_(cluster),
      grid_(grid),
      program_(*grid.program),
      rank_(rank),
      local_stride_(local_stride_of(program_.local_bytes)),
      registers_(std::size_t{warps_of(grid.block)} * program_.register_bytes),
      written_(std::size_t{warps_of(grid.block)} * program_.slots),
      shared_(grid.shared_bytes),
      shared_shadow_(grid.shared_bytes),
      local_(std::size_t{warps_of(grid.block)} * kWarpSize * local_stride_),
      local_shadow_(std::size_t{warps_of(grid.block)} * kWarpSize * local_stride_),
      last_allocations_(program_.code.size()),
      mbarriers_(shared_.data(), shared_shadow_.data(), kSharedBase) {
    const unsigned count = warps_of(grid.block);
    std::fill_n(registers_.data(), std::size_t{count} * program_.register_bytes, std::byte{0});
    warps_.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        warps_.emplace_back(*this, program_, i, registers_.data() + std::size_t{i} * program_.register_bytes,
                            written_.data() + std::size_t{i} * program_.slots);
        wgmma_queues_.push_back(std::make_unique<WgmmaQueue>());
    }
}

Cta::~Cta() = default;

void Cta::start(std::uint64_t number) {
    number_ = number;
    executed_lanes_ = 0;
    barriers_ = {};
    mbarriers_.clear();
    copy_groups_.assign(warps_.size() * kWarpSize, {});
    bulk_groups_.assign(warps_.size() * kWarpSize, {});
    for (const auto& queue : wgmma_queues_) queue->clear();
    warpgroups_.assign((warps_.size() + 3) / 4, {});
    if (tcgen05_) tcgen05_->clear();
    findings_.clear();
    std::fill_n(shared_.data(), grid_.shared_bytes, static_cast<std::byte>(kPoison & 0xFF));
    std::fill_n(shared_shadow_.data(), grid_.shared_bytes, std::byte{0});
    const std::size_t local_bytes = warps_.size() * kWarpSize * local_stride_;
    std::fill_n(local_.data(), local_bytes, static_cast<std::byte>(kPoison & 0xFF));
    std::fill_n(local_shadow_.data(), local_bytes, std::byte{0});
    const auto threads = static_cast<unsigned>(grid_.block.count());
    for (Warp& warp : warps_) {
        warp.start(threads - warp.index() * kWarpSize);
        fill_special_registers(warp);
    }
}

void Cta::fill_special_registers(Warp& warp) {
    for (const SpecialUse& use : program_.specials) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            const std::uint64_t value = special_register(use.name, *this, warp, lane);
            if (use.bits <= 32) {
                warp.lanes_of<std::uint32_t>(use.slot)[lane] =
                    static_cast<std::uint32_t>(use.bits == 16 ? value & 0xFFFF : value);
            } else {
                warp.lanes_of<std::uint64_t>(use.slot)[lane] = value;
            }
        }
    }
}

bool Cta::finished() const { return std::ranges::all_of(warps_, &Warp::finished); }
Random& Cta::random() const { return cluster_.random(); }
void Cta::stop() { cluster_.stop(); }
bool Cta::stopped() const { return cluster_.stopped(); }
std::uint64_t Cta::clock() const { return cluster_.now(); }

std::optional<std::string> Cta::arrive(const BarrierArrival& arrival) {
    Barrier& barrier = barriers_[arrival.number];
    std::optional<std::string> fault;
    if (barrier.arrived != 0 && barrier.expected != arrival.threads) {
        const auto words = [](std::uint32_t threads) {
            return threads == 0 ? std::string("all threads") : fmt::format("{} threads", threads);
        };
        fault = fmt::format("barrier {} is awaited with different counts: {} here, {} by those that arrived before",
                            arrival.number, words(arrival.threads), words(barrier.expected));
    }
    if (barrier.arrived == 0) barrier.expected = arrival.threads;
    barrier.arrived += kWarpSize;
    barrier.reduction.count += arrival.true_lanes;
    barrier.reduction.threads += arrival.lanes;
    complete_if_full(arrival.number);
    return fault;
}

void Cta::complete_if_full(std::uint32_t number) {
    Barrier& barrier = barriers_[number];
    std::uint32_t expected = barrier.expected;
    if (expected == 0) {
        expected = kWarpSize * static_cast<std::uint32_t>(std::ranges::count(warps_, false, &Warp::finished));
    }
    if (barrier.arrived == 0 || barrier.arrived < expected) return;
    const BarrierReduction reduction = barrier.reduction;
    barrier = {};
    for (Warp& warp : warps_) {
        warp.release(number, reduction);
        cluster_.wake(warp);
    }
    cluster_.progress();
}

MbarrierOutcome Cta::operate_mbarrier(std::uint32_t offset, MbarrierOperation operation, std::uint32_t operand) {
    MbarrierOutcome outcome = mbarriers_.operate(offset, operation, operand);
    if (outcome.completed) wake(Wait::mbarrier, offset);
    return outcome;
}

void Cta::check_warpgroup(Warp& warp, const Decoded& instruction, std::array<std::uint64_t, 2> descriptors) {
    WarpgroupLog& log = warpgroups_[warp.index() / 4];
    std::size_t& issued = log.issued[warp.index() % 4];
    if (issued == log.entries.size()) {
        log.entries.push_back({&instruction, descriptors});
    } else if (const auto& entry = log.entries[issued];
               entry.instruction != &instruction || entry.descriptors != descriptors) {
        warp.report(Rule::matrix, instruction, kAllLanes, [&] {
            return fmt::format(
                "warp {} issues a wgmma with the descriptors {:#x} and {:#x} while another warp of its warpgroup "
                "issues "
                "that of {} with {:#x} and {:#x}; the four warps must execute the same one",
                warp.index(), descriptors[0], descriptors[1], place_text(program_, warp.index_of(*entry.instruction)),
                entry.descriptors[0], entry.descriptors[1]);
        });
    }
    ++issued;
    if (std::ranges::count(log.issued, std::size_t{0}) == 0) {
        log.entries.pop_front();
        for (std::size_t& count : log.issued) --count;
    }
}

Tcgen05Queue& Cta::tcgen05() {
    if (!tcgen05_) tcgen05_ = std::make_unique<Tcgen05Queue>(*this);
    return *tcgen05_;
}

void Cta::wake(Wait wait, std::optional<std::uint32_t> key) {
    cluster_.progress();
    for (Warp& warp : warps_) {
        if (warp.wake(wait, key)) cluster_.wake(warp);
    }
}

bool Cta::time_out_waits() {
    bool any = false;
    for (Warp& warp : warps_) {
        if (!warp.time_out_waits()) continue;
        any = true;
        cluster_.wake(warp);
    }
    return any;
}

void Cta::complete_cluster_barrier() {
    for (Warp& warp : warps_) {
        warp.complete_cluster_barrier();
        cluster_.wake(warp);
    }
}

void Cta::warp_finished() {
    for (std::uint32_t number = 0; number < kBarriers; ++number) {
        if (barriers_[number].expected == 0) complete_if_full(number);
    }
    if (tcgen05_ && finished()) tcgen05_->cta_exits();
}

void Cta::report_deadlock() {
    const auto waiting = std::ranges::find(warps_, false, &Warp::finished);
    if (waiting == warps_.end()) return;
    const Fragment& fragment = waiting->fragments().front();
    waiting->report(Rule::deadlock, program_.code[fragment.pc], fragment.lanes,
                    [&] { return "no thread of the CTA can go on: " + describe_waiters(); });
}

std::string Cta::describe_waiters() const {
    // Warps that wait alike are listed together.
    std::map<std::tuple<std::uint32_t, Wait, std::uint32_t, LaneMask>, std::vector<unsigned>> groups;
    for (const Warp& warp : warps_) {
        for (const Fragment& fragment : warp.fragments()) {
            groups[{fragment.pc, fragment.wait, fragment.key, fragment.lanes}].push_back(warp.index());
        }
    }
    std::string text;
    for (const auto& [how, warps] : groups) {
        const auto& [pc, wait, key, lanes] = how;
        if (!text.empty()) text += "; ";
        text += fmt::format("{} {}, {}, at {} ({})", warps.size() == 1 ? "warp" : "warps", fmt::join(warps, ", "),
                            to_string_lanes(lanes), place_text(program_, pc), instruction_text(program_, pc));
        text += describe_wait({pc, lanes, wait, key, false});
    }
    const auto exited = std::ranges::count(warps_, true, &Warp::finished);
    if (exited > 0) text += fmt::format("; {} of {} warps have exited", exited, warps_.size());
    return text;
}

std::string Cta::describe_wait(const Fragment& fragment) const {
    switch (fragment.wait) {
        case Wait::none:
            break;
        case Wait::lanes:
            return fmt::format(" for the lanes of member mask {:#010x} to reach it", fragment.key);
        case Wait::warp_barrier:
            return fmt::format(" for the lanes of member mask {:#010x}", fragment.key);
        case Wait::convergence:
            return " for the rest of the warp, which is elsewhere, to reach it";
        case Wait::barrier: {
            const Barrier& barrier = barriers_[fragment.key];
            return barrier.expected == 0 ? fmt::format(" for all threads to reach barrier {}", fragment.key)
                                         : fmt::format(" for {} threads to reach barrier {}, of which {} have",
                                                       barrier.expected, fragment.key, barrier.arrived);
        }
        case Wait::mbarrier:
            return fmt::format(" for the mbarrier at {:#x} ({})", fragment.key, mbarriers_.describe(fragment.key));
        case Wait::engine:
            return " for asynchronous operations to complete";
        case Wait::cluster_barrier:
            return " for all threads of the cluster to arrive at its barrier";
        case Wait::tensor_memory:
            return fmt::format(" for {} columns of Tensor Memory to become free", fragment.key);
    }
    return {};
}

}  // namespace block_attention::simulator
