#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/problem.h"
#include "verify/footprint.h"

namespace block_attention {

/// Bytes before and behind every operand that nothing may touch.
inline constexpr std::size_t kGuardBytes = 4096;

/// What guard zones, gaps and unwritten outputs are filled with. As an fp16, bf16 or fp32 element it is a NaN with a
/// sign and a full payload, which no arithmetic instruction of a GPU produces.
inline constexpr std::byte kPoison{0xFF};

/// Memory that starts at a multiple of 4096 and is not touched before its first use.
class AlignedMemory {
  public:
    AlignedMemory() = default;
    /// Throws std::bad_alloc.
    explicit AlignedMemory(std::size_t bytes);

    [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

  private:
    struct Free {
        void operator()(std::byte* memory) const;
    };
    std::unique_ptr<std::byte[], Free> memory_;  // NOLINT(modernize-avoid-c-arrays)
    std::size_t size_ = 0;
};

/// The tensors of one problem in host memory, each in an allocation of its own: guard zone, span of the view, guard
/// zone.
class Tensors {
  public:
    /// Allocates every operand of `problem`, whose sizes and strides are set, and lets its views point there, `shift`
    /// elements behind a multiple of 256 bytes. Nothing is written. Throws UsageError if the tensors and their copy on
    /// a device or the problem itself can't be, with the fault that validate() found.
    explicit Tensors(Problem problem, std::int64_t shift = 0);

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] const std::vector<Operand>& operands() const { return operands_; }
    /// Guard zone, shift, span, guard zone.
    [[nodiscard]] std::span<std::byte> allocation(Operand operand) const;
    /// The view's span alone.
    [[nodiscard]] std::span<std::byte> span(Operand operand) const;
    /// Where in its allocation every operand's span begins, in bytes.
    [[nodiscard]] std::size_t begin() const { return kGuardBytes + shift_bytes_; }
    [[nodiscard]] const Footprint& footprint(Operand operand) const;

    /// Fills the whole allocation with poison.
    void poison(Operand operand) const;
    /// Fills all but the elements of tiles with poison: guard zones and gaps.
    void poison_surroundings(Operand operand) const;

  private:
    Problem problem_;
    std::size_t shift_bytes_;
    std::vector<Operand> operands_;
    std::array<AlignedMemory, kOperands> memory_;
    std::array<std::optional<Footprint>, kOperands> footprints_;
};

/// Throws UsageError if this machine has less memory than the problem's tensors take, which could only end badly.
void check_memory(const Problem& problem);

}  // namespace block_attention
