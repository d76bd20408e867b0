#include "verify/simulator/ptx/scopes.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace block_attention::simulator::ptx {

namespace {

/// The number that follows the prefix in a name of a range: "%r" and "%r12" give 12. Leading zeros make another name.
std::optional<std::uint32_t> number_after(std::string_view prefix, std::string_view name) {
    if (name.size() <= prefix.size() || name.substr(0, prefix.size()) != prefix) return std::nullopt;
    const std::string_view digits = name.substr(prefix.size());
    if (digits.front() < '0' || digits.front() > '9' || (digits.front() == '0' && digits.size() > 1)) {
        return std::nullopt;
    }
    std::uint32_t number = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, number);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return number;
}

}  // namespace

void Scopes::open(Position brace) {
    Scope& scope = scopes_.emplace_back();
    scope.brace = brace;
    scope.first_reference = references_.size();
}

void Scopes::close(std::vector<Instruction>& instructions) {
    const Scope& scope = scopes_.back();
    std::size_t unresolved = scope.first_reference;
    for (std::size_t i = scope.first_reference; i < references_.size(); ++i) {
        const Reference reference = references_[i];
        const auto found = scope.names.find(reference.name);
        if (found != scope.names.end() && found->second.kind == Symbol::Kind::label) {
            instructions[reference.instruction].operands[reference.operand].index = found->second.index;
        } else {
            references_[unresolved++] = reference;
        }
    }
    references_.resize(unresolved);
    scopes_.pop_back();
    if (scopes_.empty() && !references_.empty()) {
        const Reference& reference = references_.front();
        lexer_.fail(reference.position, fmt::format("'{}' is not declared: no register, variable or function of that "
                                                    "name comes before, and no scope around has that label",
                                                    shorten(reference.name)));
    }
}

void Scopes::declare(std::string_view name, Symbol symbol) {
    Scope& scope = scopes_.back();
    for (const Range& range : scope.ranges) {
        const auto number = number_after(range.prefix, name);
        if (number && *number < range.count) fail_duplicate(name, symbol.position, range.symbol.position);
    }
    const auto [entry, added] = scope.names.emplace(name, symbol);
    if (!added) fail_duplicate(name, symbol.position, entry->second.position);
}

void Scopes::declare_range(std::string_view prefix, std::uint32_t count, Symbol symbol) {
    Scope& scope = scopes_.back();
    for (const auto& [name, earlier] : scope.names) {
        const auto number = number_after(prefix, name);
        if (number && *number < count) fail_duplicate(name, symbol.position, earlier.position);
    }
    // %r<20> and %r1<3> share the name %r10: the smallest name of the longer prefix decides.
    const auto overlap = [](std::string_view shorter, std::uint32_t shorter_count, std::string_view longer) {
        if (shorter == longer) return true;
        const auto head = number_after(shorter, longer);
        return head && *head > 0 && std::uint64_t{*head} * 10 < shorter_count;
    };
    for (const Range& range : scope.ranges) {
        if (overlap(range.prefix, range.count, prefix) || overlap(prefix, count, range.prefix)) {
            fail_duplicate(fmt::format("{}<{}>", prefix, count), symbol.position, range.symbol.position);
        }
    }
    scope.ranges.push_back({prefix, count, symbol});
}

std::optional<Symbol> Scopes::find(std::string_view name) const {
    for (std::size_t depth = scopes_.size(); depth > 0; --depth) {
        if (auto symbol = find_in(scopes_[depth - 1], name)) return symbol;
    }
    return std::nullopt;
}

void Scopes::refer_to_label(const Token& name, std::size_t instruction, std::size_t operand) {
    references_.push_back({name.text, name.position, instruction, operand});
}

std::optional<Symbol> Scopes::find_in(const Scope& scope, std::string_view name) {
    for (const Range& range : scope.ranges) {
        const auto number = number_after(range.prefix, name);
        if (!number || *number >= range.count) continue;
        Symbol symbol = range.symbol;
        symbol.index += *number;
        return symbol;
    }
    const auto found = scope.names.find(name);
    if (found == scope.names.end()) return std::nullopt;
    return found->second;
}

void Scopes::fail_duplicate(std::string_view name, Position position, Position earlier) const {
    lexer_.fail(position,
                fmt::format("'{}' is already declared in this scope, at line {}", shorten(name), earlier.line));
}

}  // namespace block_attention::simulator::ptx
