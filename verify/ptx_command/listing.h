#pragma once
#include <cstdint>
#include <string>

#include "verify/simulator/ptx/module.h"

namespace block_attention {

/// Shared memory that a kernel declares.
struct SharedUse {
    std::uint64_t static_bytes = 0;       ///< its own variables, and those of the module that it names
    bool dynamic = false;                 ///< it has an extern array, which takes the launch's dynamic bytes
    std::uint32_t dynamic_alignment = 1;  ///< of that array
};

SharedUse shared_use(const simulator::ptx::Module& module, const simulator::ptx::Function& kernel);

/// What --list prints: every kernel with its parameters, what its directives fix, and its shared memory.
std::string list_kernels(const simulator::ptx::Module& module);

}  // namespace block_attention
