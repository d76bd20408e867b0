#pragma once
#include <span>

#include "reference/stage.h"

namespace block_attention {

/// Every stage of the project, in the order of the book.
std::span<const Stage* const> all_stages();

}  // namespace block_attention
