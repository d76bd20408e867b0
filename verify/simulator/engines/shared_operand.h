#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verify/simulator/layout/matrix_descriptor.h"
#include "verify/simulator/machine/issuer.h"

namespace block_attention::simulator {

/// A matrix operand in the CTA's shared memory, as an asynchronous product reads it: with what is missing of it.
class MatrixOperand {
  public:
    /// `name` is "A" or "B", as the PTX ISA calls the operand.
    MatrixOperand(const Issuer& issuer, std::string_view name) : issuer_(issuer), name_(name) {}

    /// gather_part of layout/matrix_descriptor.h. Reports what lies outside shared memory.
    void gather(const MatrixDescriptor& descriptor, Major major, std::uint32_t first, std::uint32_t extent,
                std::uint16_t* packed);
    /// The 16 bytes at an address, which hold elements of row or column `mn` and the next, `count` of them. Poison
    /// where shared memory does not reach, which is reported.
    const std::byte* read(std::uint32_t address, std::uint32_t mn, std::uint32_t count);

    /// What asynchronous copies write after the time `since` is noted as late, unless it was after the operation's own
    /// issue: the cluster's times plus 1.
    void expect_arrivals(std::uint64_t since, std::uint64_t issue) {
        since_ = since;
        issue_ = issue;
    }
    /// The address of something late.
    [[nodiscard]] std::optional<std::uint32_t> late() const { return late_; }

    /// Whether any of it was never written, or has yet to arrive.
    [[nodiscard]] bool any_missing() const { return first_missing_.has_value(); }
    /// Whether that is so of a row of A or a column of B, counted from the first one gathered.
    [[nodiscard]] bool missing(std::uint32_t mn) const { return missing_[mn]; }
    /// What is missing, for messages.
    [[nodiscard]] std::string explain() const;

  private:
    Issuer issuer_;
    std::string_view name_;
    std::bitset<256> missing_;
    std::optional<std::uint32_t> first_missing_;  ///< address
    std::optional<std::uint32_t> late_;
    std::uint64_t since_ = 0;
    std::uint64_t issue_ = 0;
};

}  // namespace block_attention::simulator
