#include "verify/simulator/ptx/operand.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "verify/simulator/ptx/special_registers.h"

namespace block_attention::simulator::ptx {

using Kind = Operand::Kind;

Operand OperandReader::read(std::size_t instruction, std::size_t operand) {
    if (lexer_.at('[')) return read_address();
    if (lexer_.accept('(')) return read_sequence(Kind::list, ')');
    if (lexer_.accept('{')) return read_sequence(Kind::vector, '}');
    if (!lexer_.at(Token::Kind::identifier)) return read_element();

    const Token name = lexer_.take();
    std::optional<Operand> found = resolve(name);
    if (!found) {
        scopes_.refer_to_label(name, instruction, operand);
        Operand label;
        label.kind = Kind::label;
        label.name = name.text;
        return label;
    }
    if (found->kind == Kind::variable) found->integer = read_offset();
    if (lexer_.accept('|')) {
        Operand pair;
        pair.kind = Kind::pair;
        pair.elements.push_back(*std::move(found));
        pair.elements.push_back(read_element());
        return pair;
    }
    return *std::move(found);
}

Guard OperandReader::read_guard() {
    lexer_.expect('@', "before a predicate");
    Guard guard;
    guard.negated = lexer_.accept('!');
    const Position position = lexer_.token().position;
    const Operand predicate = read_declared();
    if (predicate.kind != Kind::register_ ||
        function_.registers[predicate.index].register_class != RegisterClass::predicate) {
        lexer_.fail(position, "the guard of an instruction must be a register of type .pred");
    }
    guard.predicate = predicate.index;
    return guard;
}

/// What may stand in a list: a register, variable, number or sink.
Operand OperandReader::read_element() {
    if (lexer_.accept('!')) return read_negated();
    if (lexer_.accept('-')) return lexer_.at(Token::Kind::number) ? read_number(true) : read_negated();
    if (lexer_.at(Token::Kind::number)) return read_number(false);
    if (!lexer_.at(Token::Kind::identifier)) lexer_.fail_expected("an operand");
    Operand element = read_declared();
    if (element.kind == Kind::variable) element.integer = read_offset();
    return element;
}

/// [base], [base+offset] or [map, {c0, c1}].
Operand OperandReader::read_address() {
    lexer_.expect('[', "before an address");
    Operand address;
    address.kind = Kind::address;
    address.elements.push_back(read_base());
    address.integer = read_offset();
    if (lexer_.accept(',')) {
        address.kind = Kind::tensor_address;
        lexer_.expect('{', "before the coordinates of a tensor address");
        Operand coordinates = read_sequence(Kind::vector, '}');
        for (Operand& coordinate : coordinates.elements) address.elements.push_back(std::move(coordinate));
    }
    lexer_.expect(']', "after an address (its forms are [base], [base+offset] and [map, {c0, c1}])");
    return address;
}

Operand OperandReader::read_base() {
    const Position position = lexer_.token().position;
    if (lexer_.at(Token::Kind::number)) {
        Operand base = read_number(false);
        if (base.kind == Kind::floating) lexer_.fail(position, "an address cannot be a floating-point number");
        return base;
    }
    Operand base = read_declared();
    if (base.kind != Kind::register_ && base.kind != Kind::variable) {
        lexer_.fail(position, "the base of an address must be a register, a variable or an integer");
    }
    return base;
}

/// The elements and the closing character of a list or vector.
Operand OperandReader::read_sequence(Operand::Kind kind, char close) {
    Operand sequence;
    sequence.kind = kind;
    if (lexer_.accept(close)) return sequence;
    do {
        sequence.elements.push_back(read_element());
    } while (lexer_.accept(','));
    lexer_.expect(close, kind == Kind::list ? "after a list of operands" : "after a vector of operands");
    return sequence;
}

Operand OperandReader::read_negated() {
    const Position position = lexer_.token().position;
    Operand operand = read_declared();
    if (operand.kind != Kind::register_) lexer_.fail(position, "only a register or a number can be negated");
    operand.negated = true;
    return operand;
}

Operand OperandReader::read_number(bool negative) {
    Operand operand;
    const Token token = lexer_.token();
    const Number number = lexer_.take_number("a number");
    operand.float_bits = number.float_bits;
    if (number.float_bits != 0) {
        operand.kind = Kind::floating;
        const std::uint64_t sign = negative ? 1 : 0;
        operand.integer = static_cast<std::int64_t>(number.bits ^ (sign << (number.float_bits - 1U)));
        return operand;
    }
    operand.kind = Kind::integer;
    if (negative && number.bits > std::uint64_t{1} << 63U) {
        lexer_.fail(token.position, fmt::format("-{} does not fit in 64 bits", shorten(token.text)));
    }
    operand.integer = static_cast<std::int64_t>(negative ? 0 - number.bits : number.bits);
    return operand;
}

/// A name that must be declared already: anything but a label.
Operand OperandReader::read_declared() {
    const Token name = lexer_.expect(Token::Kind::identifier, "a register, variable or number");
    std::optional<Operand> found = resolve(name);
    if (!found) {
        lexer_.fail(name.position, fmt::format("'{}' is not declared: no register, variable or function of that name "
                                               "comes before",
                                               shorten(name.text)));
    }
    return *std::move(found);
}

std::optional<Operand> OperandReader::resolve(const Token& name) {
    Operand operand;
    if (name.text == "_") return operand;
    if (const auto symbol = scopes_.find(name.text)) {
        operand.index = symbol->index;
        switch (symbol->kind) {
            case Symbol::Kind::register_:
                operand.kind = Kind::register_;
                function_.registers[symbol->index].name = name.text;
                break;
            case Symbol::Kind::variable:
                operand.kind = Kind::variable;
                break;
            case Symbol::Kind::label:
                return std::nullopt;
        }
        operand.name = name.text;
        return operand;
    }
    if (const auto found = module_names_.find(name.text); found != module_names_.end()) {
        operand.kind = found->second.kind == ModuleSymbol::Kind::variable ? Kind::variable : Kind::function;
        operand.module_scope = true;
        operand.index = found->second.index;
        operand.name = name.text;
        return operand;
    }
    return resolve_special(name);
}

std::optional<Operand> OperandReader::resolve_special(const Token& name) {
    Operand operand;
    operand.kind = Kind::special_register;
    operand.name = name.text;
    if (name.text == "WARP_SZ") return operand;
    if (name.text.front() != '%') return std::nullopt;
    if (!is_special_register(name.text)) {
        lexer_.fail(name.position,
                    fmt::format("register '{}' is not declared, nor does PTX predefine it", shorten(name.text)));
    }
    if (!is_special_vector(name.text) || !lexer_.at(Token::Kind::dotted)) return operand;
    const Token component = lexer_.take();
    const bool adjacent = component.text.data() == name.text.data() + name.text.size();
    const bool known =
        component.text == ".x" || component.text == ".y" || component.text == ".z" || component.text == ".w";
    if (!adjacent || !known) {
        lexer_.fail(component.position, fmt::format("'{}' is followed by '{}': its components are .x, .y, .z and .w, "
                                                    "written without a space",
                                                    name.text, shorten(component.text)));
    }
    operand.name = {name.text.data(), name.text.size() + component.text.size()};
    return operand;
}

/// "+4" or "+-4" behind a variable or an address's base, or nothing.
std::int64_t OperandReader::read_offset() { return lexer_.accept('+') ? lexer_.take_signed("an offset in bytes") : 0; }

}  // namespace block_attention::simulator::ptx
