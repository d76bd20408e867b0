#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "verify/simulator/ptx/lexer.h"
#include "verify/simulator/ptx/module.h"

namespace block_attention::simulator::ptx {

/// What a name stands for inside a function.
struct Symbol {
    enum class Kind : std::uint8_t { register_, variable, label };
    Kind kind = Kind::register_;
    std::uint32_t index = 0;  ///< as in Operand::index
    Position position;        ///< of the declaration
};

/// The names of one function. Every { } is a scope; registers, variables and labels of a scope share one set of names;
/// an inner scope's name hides an outer one's. Registers and variables are known from their declaration on, labels in
/// all of their scope.
class Scopes {
  public:
    explicit Scopes(const Lexer& lexer) : lexer_(lexer) {}

    /// Enters the scope whose '{' stands at `brace`.
    void open(Position brace);
    /// Leaves the innermost scope: references to its labels are resolved, the others wait for the scope around it.
    /// Leaving the outermost, an unresolved reference is an error.
    void close(std::vector<Instruction>& instructions);
    [[nodiscard]] bool empty() const { return scopes_.empty(); }
    /// The '{' of the innermost scope.
    [[nodiscard]] Position brace() const { return scopes_.back().brace; }

    /// A second declaration of a name in one scope is an error.
    void declare(std::string_view name, Symbol symbol);
    /// The registers prefix0, prefix1, ... prefix(count-1), with consecutive indices from symbol.index.
    void declare_range(std::string_view prefix, std::uint32_t count, Symbol symbol);

    /// The innermost declaration so far.
    [[nodiscard]] std::optional<Symbol> find(std::string_view name) const;

    /// Notes that an operand names a label, which may still follow.
    void refer_to_label(const Token& name, std::size_t instruction, std::size_t operand);

  private:
    struct Range {
        std::string_view prefix;
        std::uint32_t count = 0;
        Symbol symbol;
    };
    struct Scope {
        Position brace;
        std::unordered_map<std::string_view, Symbol> names;
        std::vector<Range> ranges;
        std::size_t first_reference = 0;  // in references_: those from here on were made in this scope or within it
    };
    struct Reference {
        std::string_view name;
        Position position;
        std::size_t instruction = 0;
        std::size_t operand = 0;
    };

    static std::optional<Symbol> find_in(const Scope& scope, std::string_view name);
    [[noreturn]] void fail_duplicate(std::string_view name, Position position, Position earlier) const;

    const Lexer& lexer_;
    std::vector<Scope> scopes_;
    std::vector<Reference> references_;
};

}  // namespace block_attention::simulator::ptx
