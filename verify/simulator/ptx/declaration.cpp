#include "verify/simulator/ptx/declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

namespace block_attention::simulator::ptx {

namespace {

using Kind = ScalarType::Kind;

constexpr std::array kTypes{
    ScalarType{".pred", Kind::predicate, 0, RegisterClass::predicate},
    ScalarType{".b8", Kind::untyped, 1, RegisterClass::b8},
    ScalarType{".b16", Kind::untyped, 2, RegisterClass::b16},
    ScalarType{".b32", Kind::untyped, 4, RegisterClass::b32},
    ScalarType{".b64", Kind::untyped, 8, RegisterClass::b64},
    ScalarType{".b128", Kind::untyped, 16, RegisterClass::b128},
    ScalarType{".u8", Kind::integer, 1, RegisterClass::b8},
    ScalarType{".u16", Kind::integer, 2, RegisterClass::b16},
    ScalarType{".u32", Kind::integer, 4, RegisterClass::b32},
    ScalarType{".u64", Kind::integer, 8, RegisterClass::b64},
    ScalarType{".s8", Kind::integer, 1, RegisterClass::b8},
    ScalarType{".s16", Kind::integer, 2, RegisterClass::b16},
    ScalarType{".s32", Kind::integer, 4, RegisterClass::b32},
    ScalarType{".s64", Kind::integer, 8, RegisterClass::b64},
    ScalarType{".f16", Kind::floating, 2, RegisterClass::b16},
    ScalarType{".f16x2", Kind::floating, 4, RegisterClass::b32},
    ScalarType{".f32", Kind::floating, 4, RegisterClass::b32},
    ScalarType{".f64", Kind::floating, 8, RegisterClass::b64},
};

constexpr std::uint64_t kMaximumBytes = std::uint64_t{1} << 40U;             // of a variable
constexpr std::uint64_t kMaximumInitialisedBytes = std::uint64_t{1} << 28U;  // held in memory from the start
constexpr std::size_t kMaximumDimensions = 8;
constexpr std::uint64_t kMaximumAlignment = std::uint64_t{1} << 20U;

std::uint32_t read_alignment(Lexer& lexer) {
    const Position position = lexer.token().position;
    const std::uint64_t alignment = lexer.take_unsigned("an alignment in bytes", kMaximumAlignment);
    if (!std::has_single_bit(alignment)) {
        lexer.fail(position, fmt::format("alignment {} is not a power of two", alignment));
    }
    return static_cast<std::uint32_t>(alignment);
}

std::string bits_name(std::uint8_t float_bits) {
    return float_bits == 0 ? "an integer" : fmt::format("a {}-bit float", float_bits);
}

/// Reads the values behind '=' into bytes.
class InitialValue {
  public:
    /// `dimensions`: of the array, outermost first, none for a scalar. An outermost one of 0 is found by counting.
    InitialValue(Lexer& lexer, const ScalarType& type, std::vector<std::uint64_t>& dimensions)
        : lexer_(lexer), type_(type), dimensions_(dimensions) {}

    std::vector<std::byte> read() {
        std::uint64_t bytes = type_.bytes;
        for (const std::uint64_t dimension : dimensions_) bytes *= dimension;
        reserve(bytes);
        if (dimensions_.empty()) {
            read_scalar(0);
        } else {
            read_array(0, 0);
        }
        return std::move(bytes_);
    }

  private:
    void reserve(std::uint64_t bytes) {
        if (bytes > kMaximumInitialisedBytes) {
            lexer_.fail(lexer_.token().position,
                        fmt::format("an initialised variable of {} bytes is more than the simulator's limit of {}; "
                                    "declare it without values and copy them in",
                                    bytes, kMaximumInitialisedBytes));
        }
        bytes_.resize(std::max<std::size_t>(bytes_.size(), bytes));
    }

    void read_array(std::size_t level, std::uint64_t begin) {
        std::uint64_t stride = type_.bytes;
        for (std::size_t inner = level + 1; inner < dimensions_.size(); ++inner) stride *= dimensions_[inner];
        const std::uint64_t size = dimensions_[level];
        lexer_.expect('{', "before the initial values of an array");
        if (lexer_.accept('}')) return;
        std::uint64_t count = 0;
        do {
            if (size == 0) {
                reserve(begin + (count + 1) * stride);
            } else if (count == size) {
                lexer_.fail(lexer_.token().position,
                            fmt::format("more initial values than the array dimension of {} holds", size));
            }
            if (level + 1 == dimensions_.size()) {
                read_scalar(begin + count * stride);
            } else {
                read_array(level + 1, begin + count * stride);
            }
            ++count;
        } while (lexer_.accept(','));
        lexer_.expect('}', "after the initial values of an array");
        if (size == 0) dimensions_[level] = count;
    }

    void read_scalar(std::uint64_t begin) {
        const bool negative = lexer_.accept('-');
        const Token token = lexer_.token();
        if (token.kind == Token::Kind::identifier) {
            lexer_.fail(token.position, fmt::format("initial value '{}': the simulator supports numbers only, no "
                                                    "addresses of variables or functions",
                                                    shorten(token.text)));
        }
        const Number number = lexer_.take_number("an initial value");
        const std::uint64_t bits =
            number.float_bits == 0 ? from_integer(token, number.bits, negative) : from_float(token, number, negative);
        for (std::size_t byte = 0; byte < type_.bytes; ++byte) {
            // Beyond 64 bits, a value goes on with its sign.
            const std::uint64_t rest = byte < 8 ? bits >> (8 * byte) : 0 - std::uint64_t{negative};
            bytes_[begin + byte] = static_cast<std::byte>(rest & 0xffU);
        }
    }

    [[nodiscard]] std::uint64_t from_integer(const Token& token, std::uint64_t magnitude, bool negative) const {
        if (type_.kind == Kind::floating) fail_mismatch(token, 0);
        const unsigned width = std::min(64U, 8U * type_.bytes);
        const std::uint64_t limit =
            negative ? std::uint64_t{1} << (width - 1) : std::numeric_limits<std::uint64_t>::max() >> (64 - width);
        if (magnitude > limit) {
            lexer_.fail(token.position, fmt::format("initial value {}{} does not fit in {}", negative ? "-" : "",
                                                    magnitude, type_.name));
        }
        return negative ? 0 - magnitude : magnitude;
    }

    [[nodiscard]] std::uint64_t from_float(const Token& token, const Number& number, bool negative) const {
        const bool converts = type_.name == ".f32" || type_.name == ".f64";
        const bool copies = type_.kind == Kind::untyped && 8 * type_.bytes == number.float_bits;
        if (!converts && !copies) fail_mismatch(token, number.float_bits);
        const unsigned sign = negative ? 1 : 0;
        const std::uint64_t bits = number.bits ^ (std::uint64_t{sign} << (number.float_bits - 1U));
        if (8 * type_.bytes == number.float_bits) return bits;
        if (type_.bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
        return std::bit_cast<std::uint64_t>(
            static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    }

    [[noreturn]] void fail_mismatch(const Token& token, std::uint8_t float_bits) const {
        lexer_.fail(token.position, fmt::format("initial value '{}' is {}, which a variable of type {} does not take",
                                                shorten(token.text), bits_name(float_bits), type_.name));
    }

    Lexer& lexer_;
    const ScalarType& type_;
    std::vector<std::uint64_t>& dimensions_;
    std::vector<std::byte> bytes_;
};

/// "[2][3]"; an outermost "[]" is 0.
std::vector<std::uint64_t> read_dimensions(Lexer& lexer) {
    std::vector<std::uint64_t> dimensions;
    while (lexer.at('[')) {
        const Position position = lexer.take().position;
        if (dimensions.size() == kMaximumDimensions) {
            lexer.fail(position, fmt::format("an array of more than {} dimensions", kMaximumDimensions));
        }
        if (dimensions.empty() && lexer.accept(']')) {
            dimensions.push_back(0);
            continue;
        }
        dimensions.push_back(lexer.take_unsigned("an array size", kMaximumBytes));
        if (dimensions.back() == 0) lexer.fail(position, "an array of size 0; an array has at least one element");
        lexer.expect(']', "after an array size");
    }
    return dimensions;
}

/// 0 if the outermost dimension is open.
std::uint64_t total_bytes(const Lexer& lexer, const Token& name, const ScalarType& type,
                          const std::vector<std::uint64_t>& dimensions) {
    std::uint64_t bytes = type.bytes;
    bool sized = true;
    for (const std::uint64_t dimension : dimensions) {
        if (dimension == 0) {
            sized = false;
            continue;
        }
        if (dimension > kMaximumBytes / bytes) {
            lexer.fail(name.position, fmt::format("variable '{}' is larger than the simulator's limit of {} bytes",
                                                  shorten(name.text), kMaximumBytes));
        }
        bytes *= dimension;
    }
    return sized ? bytes : 0;
}

const ScalarType& read_memory_type(Lexer& lexer) {
    const Position position = lexer.token().position;
    const ScalarType& type = read_type(lexer);
    if (type.kind == Kind::predicate) lexer.fail(position, "a variable in memory cannot be of type .pred");
    return type;
}

}  // namespace

const ScalarType& read_type(Lexer& lexer) {
    for (const ScalarType& type : kTypes) {
        if (lexer.accept(type.name)) return type;
    }
    if (!lexer.at(Token::Kind::dotted)) lexer.fail_expected("a type");
    lexer.fail_unsupported("in a declaration, type");
}

std::optional<Space> space_of(std::string_view dotted) {
    if (dotted == ".global") return Space::global;
    if (dotted == ".shared") return Space::shared;
    if (dotted == ".local") return Space::local;
    if (dotted == ".param") return Space::param;
    if (dotted == ".const") return Space::constant;
    return std::nullopt;
}

std::vector<Variable> read_variables(Lexer& lexer, Space space, bool external) {
    std::optional<std::uint32_t> alignment;
    if (lexer.accept(".align")) alignment = read_alignment(lexer);
    const ScalarType& type = read_memory_type(lexer);
    std::vector<Variable> variables;
    do {
        const Token name = lexer.expect(Token::Kind::identifier, "the name of a variable");
        Variable variable;
        variable.name = name.text;
        variable.position = name.position;
        variable.space = space;
        variable.external = external;
        variable.alignment = alignment.value_or(type.bytes);
        std::vector<std::uint64_t> dimensions = read_dimensions(lexer);
        variable.bytes = total_bytes(lexer, name, type, dimensions);
        if (lexer.at('=')) {
            if (external || (space != Space::global && space != Space::constant)) {
                lexer.fail(lexer.token().position,
                           fmt::format("variable '{}' cannot have an initial value: only .global and .const variables "
                                       "that are not .extern do",
                                       shorten(name.text)));
            }
            lexer.take();
            variable.initial = InitialValue(lexer, type, dimensions).read();
            variable.bytes = variable.initial.size();
        }
        if (variable.bytes == 0 && !external) {
            lexer.fail(name.position, fmt::format("variable '{}' has no size: only an .extern array may be without one",
                                                  shorten(name.text)));
        }
        variables.push_back(std::move(variable));
    } while (lexer.accept(','));
    lexer.expect(';', "after the declaration of a variable");
    return variables;
}

Variable read_parameter(Lexer& lexer) {
    if (!lexer.accept(".param")) {
        if (lexer.at(Token::Kind::dotted)) lexer.fail_unsupported("a parameter in space");
        lexer.fail_expected("a .param declaration");
    }
    Variable parameter;
    parameter.space = Space::param;
    std::optional<std::uint32_t> alignment;
    if (lexer.accept(".align")) alignment = read_alignment(lexer);
    const ScalarType& type = read_memory_type(lexer);
    if (lexer.accept(".ptr")) {
        // What the pointer points to: its space and alignment are promises to the compiler, not to the kernel.
        if (space_of(lexer.token().text)) lexer.take();
        if (lexer.accept(".align")) read_alignment(lexer);
    } else if (lexer.accept(".align")) {
        alignment = read_alignment(lexer);
    }
    parameter.alignment = alignment.value_or(type.bytes);
    const Token name = lexer.expect(Token::Kind::identifier, "the name of a parameter");
    parameter.name = name.text;
    parameter.position = name.position;
    parameter.bytes = total_bytes(lexer, name, type, read_dimensions(lexer));
    if (parameter.bytes == 0) {
        lexer.fail(name.position,
                   fmt::format("parameter '{}' has no size; functions with a variable number of arguments are not "
                               "supported by the simulator",
                               shorten(name.text)));
    }
    return parameter;
}

}  // namespace block_attention::simulator::ptx
