#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/launch.h"

namespace block_attention {

enum class Severity : std::uint8_t { warning, error };

/// Something wrong that a kernel did, at its first occurrence; further ones of the same rule at the same source line
/// only count.
struct Finding {
    Severity severity = Severity::error;
    std::string rule;     ///< "out-of-bounds", "misaligned", "uninitialized-read", ...
    std::string message;  ///< one sentence: the access, the address, the buffer and its limits
    std::string kernel;
    std::string file;        ///< CUDA source as recorded by -lineinfo, or the PTX file's name without it
    std::uint32_t line = 0;  ///< in `file`
    /// Where the function that holds the line was inlined, and that one in turn: "kernel.cu:12", innermost first.
    std::vector<std::string> callers{};
    std::string instruction;  ///< the PTX instruction's text
    std::uint32_t ptx_line = 0;
    Dim3 cta{0, 0, 0};
    Dim3 thread{0, 0, 0};
    std::uint64_t occurrences = 1;
};

/// "naive/naive.cu:41: error: out-of-bounds: ... (kernel k, CTA 0,0,0, thread 3,0,0; 5 occurrences)", with the callers,
/// if there are any, behind the line.
std::string to_string(const Finding& finding);

}  // namespace block_attention
