#pragma once
#include <vector>

#include "verify/simulator/conformance/form.h"

/// The forms, family by family (PTX ISA 9.0, chapter 9.7). Each list is a product of modifiers and types that is larger
/// than the instruction set; what ptxas does not accept for sm_90a is no form, and h200.txt does not hold it.
namespace block_attention::conformance {

/// Every candidate.
std::vector<Form> all_forms();

// Where they come from; see the file of that name.

void add_integer_forms(FormList& list);
void add_bit_forms(FormList& list);
void add_floating_forms(FormList& list);
void add_approximate_forms(FormList& list);
void add_conversion_forms(FormList& list);
void add_compare_forms(FormList& list);
void add_move_forms(FormList& list);
void add_memory_forms(FormList& list);
void add_atomic_forms(FormList& list);
void add_warp_forms(FormList& list);
/// Kernels that no product of modifiers describes.
void add_handwritten_forms(FormList& list);

}  // namespace block_attention::conformance
