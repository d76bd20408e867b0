#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "verify/simulator/ptx/lexer.h"
#include "verify/simulator/ptx/module.h"
#include "verify/simulator/ptx/scopes.h"

namespace block_attention::simulator::ptx {

/// What a name of module scope stands for.
struct ModuleSymbol {
    enum class Kind : std::uint8_t { variable, function };
    Kind kind = Kind::variable;
    std::uint32_t index = 0;  ///< in Module::variables or Module::functions
    Position position;        ///< of the first declaration
};

using ModuleNames = std::unordered_map<std::string_view, ModuleSymbol>;

/// Reads the operands of one function's instructions and resolves their names.
class OperandReader {
  public:
    OperandReader(Lexer& lexer, const ModuleNames& module_names, Scopes& scopes, Function& function)
        : lexer_(lexer), module_names_(module_names), scopes_(scopes), function_(function) {}

    /// Takes an operand. If it is a bare name that nothing before declares, it must be a label: `instruction` and
    /// `operand` say where its index belongs once the label is found.
    Operand read(std::size_t instruction, std::size_t operand);

    /// Takes the guard (p or !p behind an at sign) before an instruction.
    Guard read_guard();

  private:
    Operand read_element();
    Operand read_address();
    Operand read_base();
    Operand read_sequence(Operand::Kind kind, char close);
    Operand read_negated();
    Operand read_number(bool negative);
    Operand read_declared();

    [[nodiscard]] std::optional<Operand> resolve(const Token& name);
    [[nodiscard]] std::optional<Operand> resolve_special(const Token& name);
    std::int64_t read_offset();

    Lexer& lexer_;
    const ModuleNames& module_names_;
    Scopes& scopes_;
    Function& function_;
};

}  // namespace block_attention::simulator::ptx
