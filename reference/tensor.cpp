#include "reference/tensor.h"

namespace block_attention {

Strides strides_bhsd(std::int64_t heads, std::int64_t tokens, std::int64_t dim) {
    return {.sequence = heads * tokens * dim, .head = tokens * dim, .token = dim, .dim = 1};
}

Strides strides_bshd(std::int64_t heads, std::int64_t tokens, std::int64_t dim) {
    return {.sequence = tokens * heads * dim, .head = dim, .token = heads * dim, .dim = 1};
}

Strides strides_thd(std::int64_t heads, std::int64_t dim) {
    return {.sequence = 0, .head = dim, .token = heads * dim, .dim = 1};
}

}  // namespace block_attention
