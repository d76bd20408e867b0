#pragma once
#include <stdexcept>

namespace block_attention {

/// A request that cannot be served as it stands. The message names the value, the limit and the way out.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace block_attention
