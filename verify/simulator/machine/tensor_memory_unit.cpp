#include "verify/simulator/machine/tensor_memory_unit.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

/// The unit of allocation, in columns.
constexpr std::uint32_t kUnit = 32;

/// States that number a note.
constexpr std::size_t kMaxNotes = 254;

}  // namespace

TensorMemory::TensorMemory()
    : cells_(std::size_t{kTensorMemoryLanes} * kPitch, static_cast<std::uint32_t>(kPoison)),
      states_(std::size_t{kTensorMemoryLanes} * kPitch, kNeverWritten) {}

void TensorMemory::clear() {
    notes_.clear();
    used_.reset();
    allocations_.clear();
    relinquished_ = false;
}

void TensorMemory::poison(std::uint32_t lane, std::uint32_t column, std::uint32_t columns, State why) {
    std::fill_n(cells(lane) + column, columns, static_cast<std::uint32_t>(kPoison));
    std::fill_n(states(lane) + column, columns, why);
}

TensorMemory::State TensorMemory::note(std::string_view why) {
    const auto found = std::ranges::find(notes_, why);
    const auto number = static_cast<std::size_t>(found - notes_.begin());
    if (found == notes_.end()) {
        if (notes_.size() == kMaxNotes) return kNeverWritten;
        notes_.emplace_back(why);
    }
    return static_cast<State>(number + kWritten + 1);
}

std::string_view TensorMemory::why(State state) const {
    return state > kWritten ? std::string_view(notes_[state - kWritten - std::size_t{1}]) : std::string_view();
}

std::optional<std::uint32_t> TensorMemory::allocate(const Issuer& by, std::uint32_t columns) {
    for (std::uint32_t first = 0; first + columns <= kTensorMemoryColumns; first += kUnit) {
        std::uint32_t free = 0;
        while (free < columns && !used_[first + free]) free += kUnit;
        if (free < columns) continue;
        for (std::uint32_t i = 0; i < columns; ++i) used_.set(first + i);
        for (std::uint32_t lane = 0; lane < kTensorMemoryLanes; ++lane) poison(lane, first, columns, kNeverWritten);
        allocations_.push_back({by, first, columns});
        return first;
    }
    return std::nullopt;
}

std::string TensorMemory::free(TensorMemoryAddress address, std::uint32_t columns) {
    const auto found = std::ranges::find(allocations_, address.column, &Allocation::column);
    if (found == allocations_.end() || address.lane != 0) {
        return fmt::format("frees {} columns from lane {}, column {}, where no allocation starts: allocated are {}",
                           columns, address.lane, address.column, describe_allocations());
    }
    std::string fault;
    if (found->columns != columns) {
        fault = fmt::format("frees {} columns of the {} allocated from column {} on; it must free all of them", columns,
                            found->columns, found->column);
    }
    for (std::uint32_t i = 0; i < found->columns; ++i) used_.reset(found->column + i);
    allocations_.erase(found);
    return fault;
}

bool TensorMemory::allocated(std::uint32_t column, std::uint32_t columns) const {
    if (column + columns > kTensorMemoryColumns) return false;
    for (std::uint32_t i = column / kUnit * kUnit; i < column + columns; i += kUnit) {
        if (!used_[i]) return false;
    }
    return true;
}

std::string TensorMemory::describe_allocations() const {
    std::string text;
    for (const Allocation& allocation : allocations_) {
        text += fmt::format("{}{}-{}", text.empty() ? "columns " : ", ", allocation.column,
                            allocation.column + allocation.columns - 1);
    }
    return text.empty() ? "nothing" : text;
}

}  // namespace block_attention::simulator
