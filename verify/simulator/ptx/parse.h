#pragma once
#include <stdexcept>
#include <string>

#include "verify/simulator/ptx/module.h"

namespace block_attention::simulator::ptx {

/// Text that is not PTX, or PTX this simulator does not implement: "path:line:column: what, and the way out".
struct PtxError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The message of a PtxError at a place in a module's text.
std::string at(const std::string& path, Position position, std::string_view message);

/// Reads PTX text as nvcc 13 and others emit it. `path` is for messages only. Throws PtxError.
Module parse(std::string text, std::string path);

}  // namespace block_attention::simulator::ptx
