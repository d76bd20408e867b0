#pragma once
#include "verify/simulator/isa/program.h"

namespace block_attention::simulator {

/// The exit of a kernel that runs off its end.
Decoded final_exit();

}  // namespace block_attention::simulator
