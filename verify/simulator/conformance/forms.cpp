#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

std::vector<Form> all_forms() {
    FormList list;
    add_integer_forms(list);
    add_bit_forms(list);
    add_floating_forms(list);
    add_approximate_forms(list);
    add_conversion_forms(list);
    add_compare_forms(list);
    add_move_forms(list);
    add_memory_forms(list);
    add_atomic_forms(list);
    add_warp_forms(list);
    add_handwritten_forms(list);
    return list.take();
}

}  // namespace block_attention::conformance
