#pragma once
#include <cstdint>
#include <functional>

namespace block_attention {

/// Calls `body(i)` once for every i in [0, count), on all cores, in any order. An exception of a call is thrown again
/// here once all running calls have ended; the rest are then not started.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

}  // namespace block_attention
