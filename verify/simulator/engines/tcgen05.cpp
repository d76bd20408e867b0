#include "verify/simulator/engines/tcgen05.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"
#include "verify/simulator/machine/registers_in_flight.h"

namespace block_attention::simulator {

namespace {

/// tcgen05.shift moves elements of 32 bytes (PTX ISA 9.7.16.9.3), in 31 lanes (9.7.16.2.3).
constexpr std::uint32_t kShiftColumns = 8;
constexpr std::uint32_t kShiftLanes = 31;

constexpr std::uint32_t kPoisonWord = static_cast<std::uint32_t>(kPoison);
/// The upper half of a cell to which an element of 16 bits is written: nobody describes it.
constexpr std::uint32_t kPoisonUpper = kPoisonWord & 0xFFFF0000;

std::string place_of(const Issuer& issuer) {
    return place_text(issuer.warp->program(), issuer.warp->index_of(*issuer.instruction));
}

bool overlap(std::span<const TensorMemoryRegion> some, std::span<const TensorMemoryRegion> others) {
    return std::ranges::any_of(some, [&](const TensorMemoryRegion& region) {
        return std::ranges::any_of(others, [&](const TensorMemoryRegion& other) { return region.overlaps(other); });
    });
}

/// The cells of a tcgen05.ld or tcgen05.st: one rectangle, or two of .16x32bx2.
std::array<TensorMemoryRegion, 2> regions_of(const RegisterAccess& access, TensorMemoryAddress address) {
    const std::uint32_t sixteens = (rows_of(access.shape) == 32 ? 3U : 1U) << (address.lane / 16);
    const std::uint32_t columns = columns_of(access);
    std::array<TensorMemoryRegion, 2> regions{{{sixteens, address.column, address.column + columns}, {}}};
    if (access.shape == RegisterShape::s16x32bx2) {
        const std::uint32_t second = address.column + static_cast<std::uint32_t>(access.split_offset);
        regions[1] = {sixteens, second, second + columns};
    }
    return regions;
}

}  // namespace

Tcgen05Queue::Tcgen05Queue(Cta& cta)
    : cta_(cta),
      order_(cta.warps().size()),
      fence_times_(cta.warps().size() * kWarpSize),
      loaded_(cta.warps().size()) {}

void Tcgen05Queue::clear() {
    memory_.clear();
    order_.clear(cta_.warps().size());
    in_flight_.clear();
    std::ranges::fill(fence_times_, 0);
    loaded_.assign(cta_.warps().size(), {});
}

void Tcgen05Queue::start(const OperationPointer& operation) {
    const bool races = check_races(*operation);
    const std::string missing = order_.access(operation->access, operation->reads, operation->writes);
    operation->time = order_.now();
    if (!missing.empty() && !races) operation->access.issuer.report(Rule::tensor_memory, [&] { return missing; });
    for (const auto& earlier : in_flight_) {
        if (earlier->executed || !pipelined(*earlier, *operation)) continue;
        earlier->successors.push_back(operation);
        ++operation->predecessors;
    }
    in_flight_.push_back(operation);
    if (operation->predecessors == 0) ordered(operation);
}

void Tcgen05Queue::ordered(const OperationPointer& operation) {
    if (!operation->when_ordered) return release(operation);
    cta_.cluster().post([this, operation] {
        operation->when_ordered();
        release(operation);
    });
}

void Tcgen05Queue::release(const OperationPointer& operation) {
    if (--operation->blockers != 0) return;
    cta_.cluster().post([this, operation] { execute(operation); });
}

void Tcgen05Queue::execute(const OperationPointer& operation) {
    if (cta_.finished()) return;  // which has been reported
    operation->execute();
    operation->executed = true;
    for (const auto& successor : std::exchange(operation->successors, {})) {
        if (--successor->predecessors == 0) ordered(successor);
    }
    cta_.cluster().post([this, operation] { complete(operation); });
}

void Tcgen05Queue::complete(const OperationPointer& operation) {
    std::erase(in_flight_, operation);
    for (const auto& commit : operation->commits) {
        if (--commit->left == 0) signal(commit);
    }
    cta_.wake(Wait::engine);
}

void Tcgen05Queue::commit(const Issuer& issuer, std::vector<SharedPlace> barriers) {
    order_.commit(*issuer.warp, issuer.lane);
    const auto commit = std::make_shared<Commit>(Commit{issuer, std::move(barriers), 0});
    for (const auto& operation : in_flight_) {
        const Issuer& by = operation->access.issuer;
        if (is_collective(operation->access.kind) || by.warp != issuer.warp || by.lane != issuer.lane) continue;
        operation->commits.push_back(commit);
        ++commit->left;
    }
    if (commit->left == 0) signal(commit);
}

void Tcgen05Queue::signal(const std::shared_ptr<Commit>& commit) {
    for (const SharedPlace& barrier : commit->barriers) {
        cta_.cluster().post([commit, barrier] {
            if (barrier.cta->finished()) {
                // Kernels commonly end without a wait for their own barriers that nobody needs any more.
                if (barrier.cta == &commit->issuer.cta()) return;
                commit->issuer.report(Rule::still_running, [&] {
                    return fmt::format(
                        "CTA {} of the cluster has exited before this commit could arrive at its mbarrier object",
                        barrier.cta->rank());
                });
                return;
            }
            const auto outcome = barrier.cta->operate_mbarrier(barrier.offset, MbarrierOperation::arrive, 1);
            if (!outcome.fault.empty()) {
                commit->issuer.report(Rule::mbarrier, [&] {
                    return fmt::format("arriving at the mbarrier object at {:#x}, it {}", barrier.offset,
                                       outcome.fault);
                });
            }
            if (outcome.fatal) barrier.cta->stop();
        });
    }
}

bool Tcgen05Queue::check_races(const Operation& operation) {
    for (const auto& earlier : in_flight_) {
        if (pipelined(*earlier, operation)) continue;
        const bool reads = overlap(operation.reads, earlier->writes);
        const bool writes = overlap(operation.writes, earlier->writes);
        if (!reads && !writes && !overlap(operation.writes, earlier->reads)) continue;
        operation.access.issuer.report(Rule::tensor_memory, [&] {
            return fmt::format(
                "it {} Tensor Memory while the instruction of {} {} it: {} must come between",
                reads ? "reads" : "writes", place_of(earlier->access.issuer), reads || writes ? "writes" : "reads",
                is_collective(earlier->access.kind) ? "tcgen05.wait"
                                                    : "tcgen05.commit and a wait for its mbarrier object");
        });
        return true;
    }
    return false;
}

bool Tcgen05Queue::check_allocated(const Operation& operation) {
    for (const auto& regions : {operation.reads, operation.writes}) {
        for (const TensorMemoryRegion& region : regions) {
            if (region.sixteens == 0 || memory_.allocated(region.first, region.end - region.first)) continue;
            operation.access.issuer.report(Rule::tensor_memory, [&] {
                return fmt::format("it accesses columns {}..{} of Tensor Memory; the CTA has allocated {}",
                                   region.first, region.end - 1, memory_.describe_allocations());
            });
            return false;
        }
    }
    return true;
}

void Tcgen05Queue::shift(const Issuer& issuer, std::uint32_t address) {
    const TensorMemoryAddress first = decode_tensor_memory_address(address);
    if (first.lane % 32 != 0 || first.column + kShiftColumns > kTensorMemoryColumns) {
        issuer.report(Rule::tensor_memory, [&] {
            return fmt::format(
                "it shifts {} columns from lane {}, column {} on; the lane must be a multiple of 32, and Tensor Memory "
                "has {} columns",
                kShiftColumns, first.lane, first.column, kTensorMemoryColumns);
        });
        return;
    }
    const auto operation = std::make_shared<Operation>();
    operation->access.kind = Kind::shift;
    operation->access.issuer = issuer;
    operation->writes[0] = {3U << (first.lane / 16), first.column, first.column + kShiftColumns};
    operation->reads[0] = operation->writes[0];
    if (!check_allocated(*operation)) return;
    operation->execute = [this, first] {
        for (std::uint32_t lane = first.lane + kShiftLanes; lane > first.lane; --lane) {
            std::copy_n(memory_.cells(lane - 1) + first.column, kShiftColumns, memory_.cells(lane) + first.column);
            std::copy_n(memory_.states(lane - 1) + first.column, kShiftColumns, memory_.states(lane) + first.column);
        }
    };
    start(operation);
}

void Tcgen05Queue::load(const Issuer& issuer, const RegisterAccess& access, std::uint32_t address,
                        std::span<const Slot> registers) {
    Warp& warp = *issuer.warp;
    for (const Slot slot : registers) {
        warp.in_flight().begin(slot, *issuer.instruction);
        loaded_[warp.index()].push_back(slot);
    }
    const auto operation = std::make_shared<Operation>();
    operation->access.kind = Kind::load;
    operation->access.issuer = issuer;
    const TensorMemoryAddress first = decode_tensor_memory_address(address);
    const Verdict verdict = check_register_access(access, first, warp.index());
    if (!verdict.ok()) issuer.report(Rule::tensor_memory, [&] { return verdict.error; });
    bool possible = verdict.ok();
    if (possible) {
        operation->reads = regions_of(access, first);
        possible = check_allocated(*operation);
    }
    if (!possible) operation->reads = {};
    operation->execute = [this, &warp, access, first, registers, possible] {
        if (possible) {
            deliver(warp, access, first, registers);
            return;
        }
        std::array<std::uint32_t, kWarpSize> values;
        values.fill(kPoisonWord);
        for (const Slot slot : registers) warp.in_flight().deliver(slot, values, kAllLanes, "");
    };
    start(operation);
}

LaneMask Tcgen05Queue::empty_half(const RegisterAccess& access, TensorMemoryAddress first) {
    if (access.shape != RegisterShape::s32x32b) return 0;
    std::array<bool, 2> holds{};
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
        const TensorMemory::State* states = memory_.states(first.lane + lane) + first.column;
        holds[lane / 16] |= std::any_of(states, states + columns_of(access),
                                        [](TensorMemory::State state) { return state != TensorMemory::kNeverWritten; });
    }
    if (holds[0] == holds[1]) return 0;
    return holds[0] ? 0xFFFF0000 : 0x0000FFFF;
}

void Tcgen05Queue::deliver(Warp& warp, const RegisterAccess& access, TensorMemoryAddress first,
                           std::span<const Slot> registers) {
    // A product with M = 64 leaves half of a warp's lanes alone. Kernels load these as well, compute something from
    // poison and drop it.
    const LaneMask excused = empty_half(access, first);
    const std::uint32_t cells_per_register = access.packed ? 2 : 1;
    for (std::uint32_t index = 0; index < registers.size(); ++index) {
        std::array<std::uint32_t, kWarpSize> values;
        LaneMask poison = 0;
        TensorMemory::State why = TensorMemory::kNeverWritten;
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
            const TensorMemoryCell cell = cell_of(access, lane, index);
            const std::uint32_t column = first.column + static_cast<std::uint32_t>(cell.column);
            const std::uint32_t* from = memory_.cells(first.lane + cell.row) + column;
            const TensorMemory::State* states = memory_.states(first.lane + cell.row) + column;
            values[lane] = access.packed ? (from[0] & 0xFFFF) | from[1] << 16 : from[0];
            for (std::uint32_t i = 0; i < cells_per_register; ++i) {
                if (states[i] == TensorMemory::kWritten) [[likely]]
                    continue;
                poison |= LaneMask{1} << lane;
                why = std::max(why, states[i]);
            }
        }
        poison &= ~excused;
        std::string reason;
        if (poison != 0) {
            reason = memory_.why(why);
            if (reason.empty()) reason = "the Tensor Memory that it was loaded from was never written";
        }
        warp.in_flight().deliver(registers[index], values, poison, reason);
    }
}

void Tcgen05Queue::store(const Issuer& issuer, const RegisterAccess& access, std::uint32_t address,
                         std::span<const Slot> registers) {
    Warp& warp = *issuer.warp;
    const auto operation = std::make_shared<Operation>();
    operation->access.kind = Kind::store;
    operation->access.issuer = issuer;
    const TensorMemoryAddress first = decode_tensor_memory_address(address);
    const Verdict verdict = check_register_access(access, first, warp.index());
    if (!verdict.ok()) {
        issuer.report(Rule::tensor_memory, [&] { return verdict.error; });
        return;
    }
    operation->writes = regions_of(access, first);
    if (!check_allocated(*operation)) return;
    // The registers are read now. What will be written is poison until it is.
    std::vector<std::uint32_t> values(registers.size() * kWarpSize);
    for (std::size_t index = 0; index < registers.size(); ++index) {
        std::copy_n(warp.lanes_of<std::uint32_t>(registers[index]), kWarpSize, values.data() + index * kWarpSize);
    }
    const TensorMemory::State arriving = memory_.note(
        fmt::format("it rests on the tcgen05.st of {}, which had yet to write Tensor Memory", place_of(issuer)));
    const std::uint32_t rows = rows_of(access.shape);
    for (const TensorMemoryRegion& region : operation->writes) {
        for (std::uint32_t row = 0; region.sixteens != 0 && row < rows; ++row) {
            memory_.poison(first.lane + row, region.first, region.end - region.first, arriving);
        }
    }
    operation->execute = [this, access, first, count = registers.size(), values = std::move(values)] {
        for (std::uint32_t index = 0; index < count; ++index) {
            for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
                const TensorMemoryCell cell = cell_of(access, lane, index);
                const std::uint32_t column = first.column + static_cast<std::uint32_t>(cell.column);
                std::uint32_t* to = memory_.cells(first.lane + cell.row) + column;
                TensorMemory::State* states = memory_.states(first.lane + cell.row) + column;
                const std::uint32_t value = values[index * kWarpSize + lane];
                states[0] = TensorMemory::kWritten;
                to[0] = access.packed ? (value & 0xFFFF) | kPoisonUpper : value;
                if (!access.packed) continue;
                states[1] = TensorMemory::kWritten;
                to[1] = value >> 16 | kPoisonUpper;
            }
        }
    };
    start(operation);
}

bool Tcgen05Queue::pending(const Warp& warp, Kind kind) const {
    return std::ranges::any_of(in_flight_, [&](const auto& operation) {
        return operation->access.kind == kind && operation->access.issuer.warp == &warp;
    });
}

bool Tcgen05Queue::loads_complete(Warp& warp) {
    if (pending(warp, Kind::load)) return false;
    order_.wait(warp, Kind::load);
    for (const Slot slot : std::exchange(loaded_[warp.index()], {})) warp.in_flight().end(slot);
    return true;
}

bool Tcgen05Queue::stores_complete(Warp& warp) {
    if (pending(warp, Kind::store)) return false;
    order_.wait(warp, Kind::store);
    return true;
}

void Tcgen05Queue::fence_after(const Warp& warp) {
    order_.fence_after(warp, warp.active());
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if ((warp.active() >> lane & 1) != 0) fence_times_[warp.index() * kWarpSize + lane] = cta_.clock() + 1;
    }
}

void Tcgen05Queue::expect_arrivals(MatrixOperand& operand, const Issuer& issuer) const {
    operand.expect_arrivals(fence_times_[issuer.warp->index() * kWarpSize + issuer.lane], cta_.clock() + 1);
}

void Tcgen05Queue::report_late(const MatrixOperand& operand, const Issuer& issuer, std::string_view name) {
    if (!operand.late()) return;
    issuer.report(Rule::matrix, [&] {
        return fmt::format(
            "operand {} at {:#x} was copied there after the thread's last tcgen05.fence::after_thread_sync: without "
            "one behind the wait for the copy, this instruction may run ahead of it",
            name, *operand.late());
    });
}

std::optional<std::uint32_t> Tcgen05Queue::allocate(const Issuer& issuer, std::uint32_t columns) {
    const auto first = memory_.allocate(issuer, columns);
    if (first) order_.forget(*first, columns);
    return first;
}

void Tcgen05Queue::free(const Issuer& issuer, std::uint32_t address, std::uint32_t columns) {
    const TensorMemoryAddress first = decode_tensor_memory_address(address);
    const std::array<TensorMemoryRegion, 1> freed{{{0xFF, first.column, first.column + columns}}};
    for (const auto& operation : in_flight_) {
        if (!overlap(freed, operation->reads) && !overlap(freed, operation->writes)) continue;
        issuer.report(Rule::tensor_memory, [&] {
            return fmt::format("it frees Tensor Memory that the instruction of {} accesses, which may still be running",
                               place_of(operation->access.issuer));
        });
    }
    const std::string fault = memory_.free(first, columns);
    if (!fault.empty()) issuer.report(Rule::tensor_memory, [&] { return "it " + fault; });
}

void Tcgen05Queue::cta_exits() {
    for (const TensorMemory::Allocation& allocation : memory_.allocations()) {
        allocation.by.report(Rule::tensor_memory, [&] {
            return fmt::format(
                "the CTA exits without having freed the {} columns of Tensor Memory allocated here: tcgen05.dealloc is "
                "missing",
                allocation.columns);
        });
    }
    for (const auto& operation : in_flight_) {
        operation->access.issuer.report(Rule::still_running,
                                        [] { return "the CTA has exited before this instruction was complete"; });
    }
}

}  // namespace block_attention::simulator
