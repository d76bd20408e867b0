#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/launch.h"
#include "verify/simulator/conformance/form.h"

namespace block_attention::conformance {

/// Kernels of several forms as one module, with machine code for sm_90a. Kernel i is called "form_<i>", i an index into
/// the candidates.
struct AssembledModule {
    std::vector<std::size_t> forms;  ///< those that ptxas accepts
    std::string ptx;
    std::vector<std::byte> image;
    std::vector<Cubin> cubins;
    KernelModule module;
};

std::string kernel_name(std::size_t form);

/// Compiles all candidates with a ptxas, which decides which of them are instructions. Throws std::runtime_error if it
/// cannot be run or answers in words that are not understood.
std::vector<std::unique_ptr<AssembledModule>> assemble(std::span<const Form> candidates, const std::string& ptxas);

}  // namespace block_attention::conformance
