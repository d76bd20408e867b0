#include "verify/simulator/ptx/body.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "verify/simulator/ptx/declaration.h"

namespace block_attention::simulator::ptx {

namespace {

constexpr std::uint32_t kMaximumRegisters = std::uint32_t{1} << 20U;  // of a function, in all its scopes

constexpr std::uint64_t kMaximum32 = std::numeric_limits<std::uint32_t>::max();

SourcePlace read_place(Lexer& lexer) {
    SourcePlace place;
    place.file = static_cast<std::uint32_t>(lexer.take_unsigned("the number of a file", kMaximum32));
    place.line = static_cast<std::uint32_t>(lexer.take_unsigned("a line number", kMaximum32));
    place.column = static_cast<std::uint32_t>(lexer.take_unsigned("a column number", kMaximum32));
    return place;
}

}  // namespace

BodyReader::BodyReader(Lexer& lexer, const ModuleNames& module_names, SourceLines& source_lines, Function& function)
    : lexer_(lexer),
      source_lines_(source_lines),
      function_(function),
      scopes_(lexer),
      operand_reader_(lexer, module_names, scopes_, function) {}

void BodyReader::read() {
    source_lines_.enter_function();
    open_scope();
    for (std::uint32_t index = 0; index < function_.variables.size(); ++index) {
        const Variable& variable = function_.variables[index];
        scopes_.declare(variable.name, {Symbol::Kind::variable, index, variable.position});
    }
    while (!scopes_.empty()) read_statement();
}

void BodyReader::open_scope() {
    const Position brace = lexer_.token().position;
    lexer_.expect('{', "before a body");
    scopes_.open(brace);
}

void BodyReader::read_statement() {
    if (lexer_.at(Token::Kind::identifier)) {
        read_label_or_instruction();
    } else if (lexer_.at(Token::Kind::dotted)) {
        read_directive();
    } else if (lexer_.at('@')) {
        const Position position = lexer_.token().position;
        const Guard guard = operand_reader_.read_guard();
        read_instruction(lexer_.expect(Token::Kind::identifier, "an instruction after its guard"), position, guard);
    } else if (lexer_.at('{')) {
        open_scope();
    } else if (lexer_.accept('}')) {
        scopes_.close(function_.instructions);
    } else if (lexer_.at(Token::Kind::end)) {
        lexer_.fail(scopes_.brace(), fmt::format("this '{{' in '{}' is never closed", shorten(function_.name)));
    } else {
        lexer_.fail_expected("an instruction, a label, a directive or '}'");
    }
}

void BodyReader::read_directive() {
    if (lexer_.accept(".reg")) {
        read_registers();
    } else if (lexer_.accept(".loc")) {
        read_location();
    } else if (lexer_.at(".pragma")) {
        skip_pragma(lexer_);
    } else if (const auto space = space_of(lexer_.token().text)) {
        lexer_.take();
        read_variables_of(*space);
    } else {
        lexer_.fail_unsupported("in a function, directive");
    }
}

/// ".reg" is taken; "%r<12>, x, y;" follows its type.
void BodyReader::read_registers() {
    const ScalarType& type = read_type(lexer_);
    do {
        const Token name = lexer_.expect(Token::Kind::identifier, "the name of a register");
        if (name.text == "_") lexer_.fail(name.position, "a register cannot be named '_'");
        const auto first = static_cast<std::uint32_t>(function_.registers.size());
        const Symbol symbol{Symbol::Kind::register_, first, name.position};
        const bool range = lexer_.accept('<');
        std::uint64_t count = 1;
        if (range) {
            count = lexer_.take_unsigned("the number of registers", kMaximum32);
            lexer_.expect('>', "after the number of registers");
        }
        if (count > kMaximumRegisters - first) {
            lexer_.fail(name.position, fmt::format("'{}' declares more than {} registers, the simulator's limit; split "
                                                   "the function",
                                                   shorten(function_.name), kMaximumRegisters));
        }
        if (range) {
            scopes_.declare_range(name.text, static_cast<std::uint32_t>(count), symbol);
        } else {
            scopes_.declare(name.text, symbol);
        }
        function_.registers.resize(first + count, {name.text, type.register_class});
    } while (lexer_.accept(','));
    lexer_.expect(';', "after a declaration of registers");
}

/// The space is taken; the declaration follows.
void BodyReader::read_variables_of(Space space) {
    for (Variable& variable : read_variables(lexer_, space, false)) {
        const auto index = static_cast<std::uint32_t>(function_.variables.size());
        scopes_.declare(variable.name, {Symbol::Kind::variable, index, variable.position});
        function_.variables.push_back(std::move(variable));
    }
}

/// ".loc" is taken. It has no semicolon.
void BodyReader::read_location() {
    const SourcePlace place = read_place(lexer_);
    std::optional<SourcePlace> call_site;
    while (lexer_.accept(',')) {
        const Token attribute = lexer_.expect(Token::Kind::identifier, "function_name or inlined_at");
        if (attribute.text == "function_name") {
            lexer_.expect(Token::Kind::identifier, "the label of a function's name");
            if (lexer_.accept('+')) lexer_.take_unsigned("an offset", kMaximum32);
        } else if (attribute.text == "inlined_at") {
            call_site = read_place(lexer_);
        } else {
            lexer_.fail(attribute.position,
                        fmt::format("'{}' is not an attribute of .loc: they are function_name and inlined_at",
                                    shorten(attribute.text)));
        }
    }
    source_line_ = source_lines_.add(place, call_site);
}

void BodyReader::read_label_or_instruction() {
    const Token name = lexer_.take();
    if (!lexer_.accept(':')) {
        read_instruction(name, name.position, std::nullopt);
        return;
    }
    const auto next = static_cast<std::uint32_t>(function_.instructions.size());
    scopes_.declare(name.text, {Symbol::Kind::label, next, name.position});
}

/// The opcode is taken.
void BodyReader::read_instruction(Token opcode, Position position, std::optional<Guard> guard) {
    modifiers_.clear();
    operands_.clear();
    while (lexer_.at(Token::Kind::dotted)) modifiers_.push_back(lexer_.take().text.substr(1));
    if (lexer_.at('}') || lexer_.at(Token::Kind::end)) lexer_.fail_expected("';' after an instruction");
    if (!lexer_.accept(';')) {
        do {
            operands_.push_back(operand_reader_.read(function_.instructions.size(), operands_.size()));
        } while (lexer_.accept(','));
        lexer_.expect(';', "or ',' after an operand (a constant must be one literal: expressions are not supported)");
    }
    Instruction& instruction = function_.instructions.emplace_back();
    instruction.opcode = opcode.text;
    instruction.modifiers.assign(modifiers_.begin(), modifiers_.end());
    instruction.guard = guard;
    instruction.operands.assign(std::make_move_iterator(operands_.begin()), std::make_move_iterator(operands_.end()));
    instruction.position = position;
    instruction.source_line = source_line_;
}

void skip_pragma(Lexer& lexer) {
    if (!lexer.accept(".pragma")) lexer.fail_expected("'.pragma'");
    do {
        lexer.expect(Token::Kind::string, "a string after .pragma");
    } while (lexer.accept(','));
    lexer.expect(';', "after .pragma");
}

}  // namespace block_attention::simulator::ptx
