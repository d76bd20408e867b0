#include "verify/cases/load.h"

namespace block_attention {

Tensors load_case(const Case& test_case, std::uint64_t seed) {
    Tensors tensors(make_problem(test_case), shift_of(test_case.layout));
    for (const Operand operand : tensors.problem().inputs()) {
        tensors.poison_surroundings(operand);
        fill_input(tensors.problem(), operand, test_case.fill, seed);
    }
    return tensors;
}

}  // namespace block_attention
