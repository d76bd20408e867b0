#pragma once
#include <string_view>

namespace block_attention::simulator::ptx {

/// Whether PTX predefines this register (PTX ISA 10, "Special Registers"): "%laneid", "%envreg3". Vectors such as %tid
/// are named without their component.
bool is_special_register(std::string_view name);

/// Whether it is a vector, read as %tid.x, .y, .z or .w.
bool is_special_vector(std::string_view name);

}  // namespace block_attention::simulator::ptx
