#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/engines/shared_operand.h"
#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/engines/tensor_memory_order.h"
#include "verify/simulator/layout/instruction_descriptor.h"
#include "verify/simulator/layout/tensor_memory.h"
#include "verify/simulator/machine/issuer.h"
#include "verify/simulator/machine/shared_place.h"
#include "verify/simulator/machine/tensor_memory_unit.h"

/// The asynchronous operations of tcgen05 (PTX ISA 9.7.16) in one CTA. Each reads its operands, writes its result and
/// completes at times of its own, drawn from the seed, in the orders that 9.7.16.6.2 allows and only those.
namespace block_attention::simulator {

/// tcgen05.mma, kind f16, one CTA.
struct Tcgen05Multiply {
    std::uint32_t d = 0;  ///< address in Tensor Memory
    bool a_in_tensor_memory = false;
    std::uint64_t a = 0;  ///< matrix descriptor, or address in Tensor Memory
    std::uint64_t b = 0;  ///< matrix descriptor
    std::uint32_t instruction_descriptor = 0;
    std::array<std::uint32_t, 4> disabled_lanes{};  ///< bit i of the 128: lane i is not written
    bool add_d = false;                             ///< enable-input-d
    unsigned scale_exponent = 0;                    ///< scale-input-d
};

/// What a CTA has in flight, and its Tensor Memory.
class Tcgen05Queue {
  public:
    explicit Tcgen05Queue(Cta& cta);
    /// Forgets everything, for the next CTA.
    void clear();
    [[nodiscard]] TensorMemory& memory() { return memory_; }

    // One thread each.

    void multiply(const Issuer& issuer, const Tcgen05Multiply& operands);
    void copy(const Issuer& issuer, SharedCopyShape shape, std::uint32_t address, std::uint64_t descriptor);
    /// Moves 8 columns of 31 lanes one lane further.
    void shift(const Issuer& issuer, std::uint32_t address);
    /// Arrives at the barriers once the thread's earlier operations of the kinds above are complete.
    void commit(const Issuer& issuer, std::vector<SharedPlace> barriers);

    // A warp each.

    /// The registers are in flight until loads_complete.
    void load(const Issuer& issuer, const RegisterAccess& access, std::uint32_t address,
              std::span<const Slot> registers);
    void store(const Issuer& issuer, const RegisterAccess& access, std::uint32_t address,
               std::span<const Slot> registers);
    /// Whether the warp's loads or stores are complete. If not, Wait::engine is woken when one is.
    [[nodiscard]] bool loads_complete(Warp& warp);
    [[nodiscard]] bool stores_complete(Warp& warp);

    void fence_before(const Warp& warp) { order_.fence_before(warp, warp.active()); }
    void fence_after(const Warp& warp);

    /// Columns for tcgen05.alloc, if there are so many: the first one.
    std::optional<std::uint32_t> allocate(const Issuer& issuer, std::uint32_t columns);
    /// Frees columns that allocate() has given; reports what is wrong.
    void free(const Issuer& issuer, std::uint32_t address, std::uint32_t columns);
    /// The CTA's last thread exits: reports what is not over.
    void cta_exits();

  private:
    struct Commit {
        Issuer issuer;
        std::vector<SharedPlace> barriers;
        std::uint32_t left = 0;
    };
    using Kind = Tcgen05Kind;
    struct Operation {
        TensorMemoryAccess access;
        std::uint64_t time = 0;  ///< of its issue, as TensorMemoryOrder numbers events
        std::array<TensorMemoryRegion, 2> reads{};
        std::array<TensorMemoryRegion, 2> writes{};
        std::function<void()> when_ordered;  ///< runs when the operations are over that go before; then release()
        std::function<void()> execute;
        std::uint32_t predecessors = 0;
        std::uint32_t blockers = 1;  ///< reads, and being ordered, that execution waits for
        bool executed = false;
        std::vector<std::shared_ptr<Operation>> successors;
        std::vector<std::shared_ptr<Commit>> commits;
    };
    using OperationPointer = std::shared_ptr<Operation>;
    struct Product;

    void start(const OperationPointer& operation);
    void ordered(const OperationPointer& operation);
    void release(const OperationPointer& operation);
    void execute(const OperationPointer& operation);
    void complete(const OperationPointer& operation);
    void signal(const std::shared_ptr<Commit>& commit);
    [[nodiscard]] bool pipelined(const Operation& first, const Operation& second) const {
        return order_.pipelined(first.access, first.time, second.access);
    }
    bool check_races(const Operation& operation);
    bool check_allocated(const Operation& operation);
    void expect_arrivals(MatrixOperand& operand, const Issuer& issuer) const;
    static void report_late(const MatrixOperand& operand, const Issuer& issuer, std::string_view name);
    void read_shared(const OperationPointer& operation, const std::shared_ptr<Product>& product, bool is_a);
    void read_a(Product& product);
    void carry_out(Product& product);
    void deliver(Warp& warp, const RegisterAccess& access, TensorMemoryAddress first, std::span<const Slot> registers);
    /// The half of the lanes that holds nothing in the columns of a load, if the other half does.
    [[nodiscard]] LaneMask empty_half(const RegisterAccess& access, TensorMemoryAddress first);
    [[nodiscard]] bool pending(const Warp& warp, Kind kind) const;

    Cta& cta_;
    TensorMemory memory_;
    TensorMemoryOrder order_;
    std::vector<OperationPointer> in_flight_;  ///< in the order of their issue
    std::vector<std::uint64_t> fence_times_;   ///< by thread: its last tcgen05.fence::after_thread_sync, plus 1
    std::vector<std::vector<Slot>> loaded_;    ///< by warp: registers of loads that no wait has covered
    // Memory that is used again.
    PackedRows a_;
    PackedColumns b_;
};

}  // namespace block_attention::simulator
