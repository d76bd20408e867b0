#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/stage.h"
#include "verify/cases/case.h"

namespace block_attention {

/// The cases that the words name, in their order: a built-in one, all that a glob matches, or one given by a
/// specification (it contains "="). No words: all built-in cases. Throws UsageError for a word that names nothing.
std::vector<Case> select_cases(const std::vector<std::string>& words, std::uint64_t seed);

/// The stages that the words name, in the order of `stages`. No words: all. Throws UsageError as above.
std::vector<const Stage*> select_stages(const std::vector<std::string>& words, std::span<const Stage* const> stages);

}  // namespace block_attention
