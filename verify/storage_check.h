#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verify/tensors.h"

namespace block_attention {

/// Something that a stage did to its tensors and must not do, at its first place; further ones only count.
struct StorageFault {
    std::string rule;  ///< "guard-zone", "gap", "unwritten" or "input-changed"
    Operand operand = Operand::o;
    std::string message;  ///< one sentence that names the operand and the place
    std::uint64_t occurrences = 1;
};

/// Checks an output that lies in its host allocation, poisoned before the stage ran: no byte outside the elements of
/// tiles is written, and every one of these elements is.
std::vector<StorageFault> check_output(const Tensors& tensors, Operand operand);

/// Compares part of an input's allocation, as a device holds it after the run, with the host's: `device` starts at byte
/// `begin` of the allocation.
std::vector<StorageFault> check_input(const Tensors& tensors, Operand operand, std::span<const std::byte> device,
                                      std::size_t begin);

/// Adds `more` to `faults`; faults of the same rule and operand count as one.
void merge(std::vector<StorageFault>& faults, std::vector<StorageFault> more);

}  // namespace block_attention
