#include "verify/stages.h"

#include <array>

#include "naive/naive.h"
#include "optimized/blackwell_tile/blackwell_tile.h"
#include "reference/oracle.h"

namespace block_attention {

std::span<const Stage* const> all_stages() {
    static const std::array kStages{&oracle_stage(), &naive_stage(), &blackwell_tile_stage()};
    return kStages;
}

}  // namespace block_attention
