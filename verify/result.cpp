#include "verify/result.h"

namespace block_attention {

ProblemShape shape_of(const Problem& problem) {
    return {.dtype = problem.dtype,
            .jagged = problem.jagged(),
            .sequences = problem.sequences,
            .tokens = problem.tokens,
            .heads = problem.heads,
            .head_dim = problem.head_dim,
            .block_size = problem.block_size,
            .tiles = count_tiles(problem),
            .scale = problem.scale};
}

}  // namespace block_attention
