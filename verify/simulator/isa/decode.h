#pragma once
#include <memory>

#include "verify/simulator/isa/program.h"

namespace block_attention::simulator {

/// Decodes a kernel of a module. Throws ptx::PtxError, with file, line and column, at the first thing that is not
/// simulated; the module's other kernels are not looked at.
std::shared_ptr<const Program> decode_kernel(std::shared_ptr<const LoadedModule> module, const ptx::Function& kernel);

}  // namespace block_attention::simulator
