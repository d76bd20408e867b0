#pragma once
#include <string>

namespace block_attention::simulator {

/// What a check of an operand found: one sentence each, empty if there is nothing to say.
struct Verdict {
    std::string error;    ///< makes the operation undefined: names the field, its value and the limit
    std::string warning;  ///< sources disagree about it, or nobody measured it; names the safe choice

    [[nodiscard]] bool ok() const { return error.empty(); }
};

}  // namespace block_attention::simulator
