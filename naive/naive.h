#pragma once
#include "reference/stage.h"

namespace block_attention {

/// Step 2 of the ladder: one thread a query row, global memory only, fp32 arithmetic. It serves every type, any
/// strides, any head dim and blocks of up to 1024 tokens, and runs on every GPU from sm_75 up.
const Stage& naive_stage();

}  // namespace block_attention
