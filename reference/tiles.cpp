#include "reference/tiles.h"

#include <algorithm>

namespace block_attention {
namespace {

/// Calls `visit(sequence, first token, tokens)` for each sequence.
template <typename Visit>
void for_each_sequence(const Problem& problem, const Visit& visit) {
    for (std::int64_t s = 0; s < problem.sequences; ++s) {
        if (problem.jagged()) {
            const auto index = static_cast<std::size_t>(s);
            visit(s, problem.offsets[index], problem.offsets[index + 1] - problem.offsets[index]);
        } else {
            visit(s, std::int64_t{0}, problem.tokens);
        }
    }
}

}  // namespace

std::int64_t count_tiles(const Problem& problem) {
    std::int64_t count = 0;
    for_each_sequence(problem, [&](std::int64_t, std::int64_t, std::int64_t tokens) {
        count += tiles_in(tokens, problem.block_size);
    });
    return count;
}

//! [tiles]
std::vector<Tile> list_tiles(const Problem& problem) {
    std::vector<Tile> tiles;
    tiles.reserve(static_cast<std::size_t>(count_tiles(problem)));
    for_each_sequence(problem, [&](std::int64_t sequence, std::int64_t first, std::int64_t tokens) {
        for (std::int64_t begin = 0; begin < tokens; begin += problem.block_size) {
            tiles.push_back({.first_row = first + begin,
                             .length = static_cast<std::int32_t>(std::min(problem.block_size, tokens - begin)),
                             .sequence = static_cast<std::int32_t>(sequence)});
        }
    });
    return tiles;
}
//! [tiles]

}  // namespace block_attention
