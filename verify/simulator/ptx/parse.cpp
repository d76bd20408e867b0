#include "verify/simulator/ptx/parse.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "verify/simulator/ptx/body.h"
#include "verify/simulator/ptx/declaration.h"
#include "verify/simulator/ptx/lexer.h"
#include "verify/simulator/ptx/operand.h"
#include "verify/simulator/ptx/source_lines.h"

namespace block_attention::simulator::ptx {

namespace {

constexpr std::uint64_t kMaximum32 = std::numeric_limits<std::uint32_t>::max();

/// What stands before a declaration of module scope.
enum class Linkage : std::uint8_t { none, visible, external, weak, common };

class ModuleReader {
  public:
    ModuleReader(std::string text, std::string path);

    Module read();

  private:
    void read_header();
    void read_statement();
    Linkage read_linkage();
    void read_file();
    void skip_section();
    void read_module_variables(Space space, bool external);

    void read_function(bool entry, Linkage linkage);
    std::vector<Variable> read_parameters();
    void read_directives(Function& function);
    std::vector<std::uint32_t> read_extents(std::string_view directive);
    Function& declare(const Function& function);
    void compare_parameters(const Function& function, std::string_view what, const std::vector<Variable>& earlier,
                            const std::vector<Variable>& now) const;

    Module module_;
    Lexer lexer_;
    SourceLines source_lines_;
    ModuleNames names_;
};

Module empty_module(std::string text, std::string path) {
    Module module;
    module.text = std::make_shared<const std::string>(std::move(text));
    module.path = std::move(path);
    return module;
}

ModuleReader::ModuleReader(std::string text, std::string path)
    : module_(empty_module(std::move(text), std::move(path))),
      lexer_(*module_.text, module_.path),
      source_lines_(module_.source_lines) {}

Module ModuleReader::read() {
    read_header();
    while (!lexer_.at(Token::Kind::end)) read_statement();
    return std::move(module_);
}

void ModuleReader::read_header() {
    if (!lexer_.accept(".version")) lexer_.fail_expected("'.version', with which PTX begins");
    const Token version = lexer_.expect(Token::Kind::number, "a version such as 9.0");
    const std::size_t dot = version.text.find('.');
    const auto part = [&](std::string_view digits) {
        std::uint32_t value = 0;
        if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string_view::npos) {
            lexer_.fail(version.position, fmt::format("'{}' is not a version such as 9.0", shorten(version.text)));
        }
        for (const char digit : digits) value = 10 * value + static_cast<std::uint32_t>(digit - '0');
        return value;
    };
    module_.version_major = part(version.text.substr(0, dot));
    module_.version_minor = part(dot == std::string_view::npos ? "" : version.text.substr(dot + 1));

    if (!lexer_.accept(".target")) lexer_.fail_expected("'.target', which follows '.version'");
    module_.target = lexer_.expect(Token::Kind::identifier, "a target such as sm_90a").text;
    while (lexer_.accept(',')) {
        const Token option = lexer_.expect(Token::Kind::identifier, "a target option");
        // The others change how textures are named, or arithmetic.
        if (option.text != "debug") {
            lexer_.fail(option.position,
                        fmt::format("target option '{}' is not supported by the simulator", shorten(option.text)));
        }
    }

    if (lexer_.accept(".address_size")) {
        const Position position = lexer_.token().position;
        const std::uint64_t bits = lexer_.take_unsigned("an address size in bits", kMaximum32);
        if (bits != 64) {
            lexer_.fail(position, fmt::format("an address size of {} bits is not supported by the simulator; it is 64 "
                                              "on every GPU with compute capability 5.0 or later",
                                              bits));
        }
    }
}

void ModuleReader::read_statement() {
    if (!lexer_.at(Token::Kind::dotted)) lexer_.fail_expected("a directive");
    if (lexer_.accept(".file")) return read_file();
    if (lexer_.accept(".section")) return skip_section();
    if (lexer_.at(".pragma")) return skip_pragma(lexer_);

    const Linkage linkage = read_linkage();
    if (lexer_.accept(".entry")) return read_function(true, linkage);
    if (lexer_.accept(".func")) return read_function(false, linkage);
    const std::optional<Space> space = space_of(lexer_.token().text);
    if (!space || *space == Space::param) lexer_.fail_unsupported("at module scope, directive");
    lexer_.take();
    read_module_variables(*space, linkage == Linkage::external);
}

Linkage ModuleReader::read_linkage() {
    if (lexer_.accept(".visible")) return Linkage::visible;
    if (lexer_.accept(".extern")) return Linkage::external;
    if (lexer_.accept(".weak")) return Linkage::weak;
    if (lexer_.accept(".common")) return Linkage::common;
    return Linkage::none;
}

/// ".file" is taken; "1 "path", time, size" follows, the last two optional.
void ModuleReader::read_file() {
    const auto number = static_cast<std::uint32_t>(lexer_.take_unsigned("the number of a file", kMaximum32));
    const Token name = lexer_.expect(Token::Kind::string, "the path of a file");
    module_.files[number] = name.text.substr(1, name.text.size() - 2);
    while (lexer_.accept(',')) {
        lexer_.take_unsigned("a file's time or size", std::numeric_limits<std::uint64_t>::max());
    }
}

/// ".section" is taken. Debug sections describe the source; the simulator needs none of it.
void ModuleReader::skip_section() {
    if (lexer_.token().text.substr(0, 6) != ".debug") lexer_.fail_unsupported("section");
    lexer_.take();
    if (!lexer_.at('{')) lexer_.fail_expected("'{' after a section's name");
    lexer_.skip_block();
}

void ModuleReader::read_module_variables(Space space, bool external) {
    for (Variable& variable : read_variables(lexer_, space, external)) {
        const auto index = static_cast<std::uint32_t>(module_.variables.size());
        const ModuleSymbol symbol{ModuleSymbol::Kind::variable, index, variable.position};
        const auto [entry, added] = names_.emplace(variable.name, symbol);
        if (!added) {
            lexer_.fail(variable.position, fmt::format("'{}' is already declared, at line {}", shorten(variable.name),
                                                       entry->second.position.line));
        }
        module_.variables.push_back(std::move(variable));
    }
}

/// ".entry" or ".func" is taken.
void ModuleReader::read_function(bool entry, Linkage linkage) {
    Function function;
    function.entry = entry;
    if (!entry && lexer_.at('(')) function.results = read_parameters();
    const Token name = lexer_.expect(Token::Kind::identifier, "the name of a function");
    function.name = name.text;
    function.position = name.position;
    if (lexer_.at('(')) function.parameters = read_parameters();
    function.variables = function.parameters;
    function.variables.insert(function.variables.end(), function.results.begin(), function.results.end());
    read_directives(function);

    Function& declared = declare(function);
    if (lexer_.accept(';')) return;
    if (!lexer_.at('{')) lexer_.fail_expected("'{', ';' or a directive after the head of a function");
    if (linkage == Linkage::external) {
        lexer_.fail(name.position,
                    fmt::format("'{}' is declared .extern, so it cannot have a body here", shorten(name.text)));
    }
    if (declared.has_body) {
        lexer_.fail(name.position,
                    fmt::format("'{}' is already defined, at line {}", shorten(name.text), declared.position.line));
    }
    function.has_body = true;
    BodyReader(lexer_, names_, source_lines_, function).read();
    declared = std::move(function);
}

/// "(.param .u32 a, ...)".
std::vector<Variable> ModuleReader::read_parameters() {
    lexer_.expect('(', "before the parameters of a function");
    std::vector<Variable> parameters;
    if (lexer_.accept(')')) return parameters;
    do {
        parameters.push_back(read_parameter(lexer_));
    } while (lexer_.accept(','));
    lexer_.expect(')', "or ',' after a parameter");
    return parameters;
}

/// What stands between a function's parameters and its body.
void ModuleReader::read_directives(Function& function) {
    while (lexer_.at(Token::Kind::dotted)) {
        if (lexer_.accept(".maxntid")) {
            function.max_threads = read_extents(".maxntid");
        } else if (lexer_.accept(".reqntid")) {
            function.required_threads = read_extents(".reqntid");
        } else if (lexer_.accept(".reqnctapercluster")) {
            function.required_cluster = read_extents(".reqnctapercluster");
        } else if (lexer_.accept(".maxnreg")) {
            function.max_registers =
                static_cast<std::uint32_t>(lexer_.take_unsigned("a number of registers", kMaximum32));
        } else if (lexer_.accept(".minnctapersm") || lexer_.accept(".maxclusterrank")) {
            lexer_.take_unsigned("a number of CTAs", kMaximum32);
        } else if (lexer_.at(".pragma")) {
            skip_pragma(lexer_);
        } else if (!lexer_.accept(".explicitcluster") && !lexer_.accept(".noreturn")) {
            lexer_.fail_unsupported("before a function's body, directive");
        }
    }
}

/// One to three numbers above 0.
std::vector<std::uint32_t> ModuleReader::read_extents(std::string_view directive) {
    std::vector<std::uint32_t> extents;
    do {
        const Token token = lexer_.token();
        extents.push_back(static_cast<std::uint32_t>(lexer_.take_unsigned("an extent", kMaximum32)));
        if (extents.back() == 0 || extents.size() > 3) {
            lexer_.fail(token.position, fmt::format("{} takes one to three numbers above 0", directive));
        }
    } while (lexer_.accept(','));
    return extents;
}

/// The module's entry for a function: the one of an earlier declaration, which must agree, or a new one.
Function& ModuleReader::declare(const Function& function) {
    const auto index = static_cast<std::uint32_t>(module_.functions.size());
    const ModuleSymbol symbol{ModuleSymbol::Kind::function, index, function.position};
    const auto [entry, added] = names_.emplace(function.name, symbol);
    if (added) return module_.functions.emplace_back(function);

    const bool is_function = entry->second.kind == ModuleSymbol::Kind::function;
    if (!is_function || module_.functions[entry->second.index].entry != function.entry) {
        lexer_.fail(function.position, fmt::format("'{}' is already declared as something else, at line {}",
                                                   shorten(function.name), entry->second.position.line));
    }
    Function& earlier = module_.functions[entry->second.index];
    compare_parameters(function, "parameters", earlier.parameters, function.parameters);
    compare_parameters(function, "results", earlier.results, function.results);
    return earlier;
}

void ModuleReader::compare_parameters(const Function& function, std::string_view what,
                                      const std::vector<Variable>& earlier, const std::vector<Variable>& now) const {
    bool same = earlier.size() == now.size();
    for (std::size_t i = 0; same && i < now.size(); ++i) {
        same = earlier[i].bytes == now[i].bytes && earlier[i].alignment == now[i].alignment;
    }
    if (same) return;
    lexer_.fail(function.position,
                fmt::format("the {} of '{}' differ in number, size or alignment from its declaration at line {}", what,
                            shorten(function.name), names_.at(function.name).position.line));
}

}  // namespace

std::string at(const std::string& path, Position position, std::string_view message) {
    return fmt::format("{}:{}:{}: {}", path, position.line, position.column, message);
}

Module parse(std::string text, std::string path) { return ModuleReader(std::move(text), std::move(path)).read(); }

}  // namespace block_attention::simulator::ptx
