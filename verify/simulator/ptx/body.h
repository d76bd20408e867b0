#pragma once
#include <string_view>
#include <vector>

#include "verify/simulator/ptx/lexer.h"
#include "verify/simulator/ptx/module.h"
#include "verify/simulator/ptx/operand.h"
#include "verify/simulator/ptx/scopes.h"
#include "verify/simulator/ptx/source_lines.h"

namespace block_attention::simulator::ptx {

/// Reads the body of one function: its statements, declarations and scopes.
class BodyReader {
  public:
    /// `function` has its parameters and results, also as its first variables.
    BodyReader(Lexer& lexer, const ModuleNames& module_names, SourceLines& source_lines, Function& function);

    /// From the '{' to behind the '}' of the body.
    void read();

  private:
    void open_scope();
    void read_statement();
    void read_directive();
    void read_registers();
    void read_variables_of(Space space);
    void read_location();
    void read_label_or_instruction();
    void read_instruction(Token opcode, Position position, std::optional<Guard> guard);

    Lexer& lexer_;
    SourceLines& source_lines_;
    Function& function_;
    Scopes scopes_;
    OperandReader operand_reader_;
    std::int32_t source_line_ = -1;
    // Collected here, then copied at their exact size: an instruction keeps no spare capacity.
    std::vector<std::string_view> modifiers_;
    std::vector<Operand> operands_;
};

/// From ".pragma" to behind its semicolon. A pragma is advice to the compiler and changes no result.
void skip_pragma(Lexer& lexer);

}  // namespace block_attention::simulator::ptx
