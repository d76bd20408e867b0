#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/layout/tensor_memory.h"
#include "verify/simulator/machine/issuer.h"

namespace block_attention::simulator {

/// The Tensor Memory of a CTA, and who has allocated what of it (PTX ISA 9.7.16.1 and 9.7.16.7). Other CTAs of the
/// multiprocessor take nothing away from it. Columns that have just been allocated are poison.
class TensorMemory {
  public:
    /// What is known of a cell: kNeverWritten, kWritten, or why it holds poison, as note() numbers it.
    using State = std::uint8_t;
    static constexpr State kNeverWritten = 0;
    static constexpr State kWritten = 1;

    TensorMemory();
    /// Nothing is allocated any more, and every CTA's thread may allocate.
    void clear();

    /// The cells and their states of one lane, by column.
    [[nodiscard]] std::uint32_t* cells(std::uint32_t lane) { return cells_.data() + std::size_t{lane} * kPitch; }
    [[nodiscard]] State* states(std::uint32_t lane) { return states_.data() + std::size_t{lane} * kPitch; }
    /// Makes `columns` cells of a lane poison.
    void poison(std::uint32_t lane, std::uint32_t column, std::uint32_t columns, State why);
    /// The state of cells that hold poison for that reason.
    State note(std::string_view why);
    /// The reason, or nothing: the cells were never written.
    [[nodiscard]] std::string_view why(State state) const;

    struct Allocation {
        Issuer by;
        std::uint32_t column = 0;
        std::uint32_t columns = 0;
    };
    /// The first column of the lowest free ones, if there are so many.
    std::optional<std::uint32_t> allocate(const Issuer& by, std::uint32_t columns);
    /// Returns what is wrong: no allocation of this size starts there.
    std::string free(TensorMemoryAddress address, std::uint32_t columns);
    [[nodiscard]] std::span<const Allocation> allocations() const { return allocations_; }
    [[nodiscard]] bool allocated(std::uint32_t column, std::uint32_t columns) const;
    /// "columns 0-255", or "nothing".
    [[nodiscard]] std::string describe_allocations() const;

    /// tcgen05.relinquish_alloc_permit.
    void relinquish() { relinquished_ = true; }
    [[nodiscard]] bool relinquished() const { return relinquished_; }

  private:
    /// The distance of two lanes: an odd number of host cache lines, so that the lanes' cells of a column don't compete
    /// for the same sets of a cache.
    static constexpr std::uint32_t kPitch = kTensorMemoryColumns + 16;

    std::vector<std::uint32_t> cells_;
    std::vector<State> states_;
    std::vector<std::string> notes_;
    std::bitset<kTensorMemoryColumns> used_;
    std::vector<Allocation> allocations_;
    bool relinquished_ = false;
};

}  // namespace block_attention::simulator
