#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "verify/simulator/ptx/lexer.h"
#include "verify/simulator/ptx/module.h"

namespace block_attention::simulator::ptx {

/// A fundamental type of PTX (PTX ISA 5.2.1), as declarations name them.
struct ScalarType {
    enum class Kind : std::uint8_t { predicate, untyped, integer, floating };
    std::string_view name;  ///< with its dot
    Kind kind = Kind::untyped;
    std::uint8_t bytes = 0;  ///< 0 for .pred
    RegisterClass register_class = RegisterClass::b32;
};

/// Takes a type. Vector, texture and sub-byte types are not supported.
const ScalarType& read_type(Lexer& lexer);

/// The space that ".shared" and its like name, if `dotted` is one of them.
std::optional<Space> space_of(std::string_view dotted);

/// Takes ".align 4 .b8 a[16], b;" that follows the space, with initial values, up to and with the semicolon.
/// `external`: declared .extern, so an array may be without a size.
std::vector<Variable> read_variables(Lexer& lexer, Space space, bool external);

/// Takes one ".param .u64 .ptr .global .align 4 a" of a kernel or function.
Variable read_parameter(Lexer& lexer);

}  // namespace block_attention::simulator::ptx
