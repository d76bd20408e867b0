#pragma once
#include <cstdint>
#include <vector>

#include "reference/problem.h"

namespace block_attention {

/// One block of the diagonal: `length` neighbouring tokens of one sequence, which attend to each other and nothing
/// else. Every head has the same tiles. Kernels read this struct as it stands.
struct Tile {
    std::int64_t first_row;  ///< on the token axis of the problem's views: in a jagged problem, of the whole batch
    std::int32_t length;     ///< 1 to block_size
    std::int32_t sequence;   ///< in a jagged problem the views' sequence stride is 0, so this is for messages only

    bool operator==(const Tile&) const = default;
};

/// The number of tiles that `tokens` tokens are cut into.
constexpr std::int64_t tiles_in(std::int64_t tokens, std::int64_t block_size) {
    return tokens / block_size + (tokens % block_size != 0 ? 1 : 0);
}

/// The number of tiles of a valid problem, without listing them.
std::int64_t count_tiles(const Problem& problem);

/// All tiles of a valid problem, by sequence, then by first row. This is the only place that cuts a sequence.
std::vector<Tile> list_tiles(const Problem& problem);

}  // namespace block_attention
