#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "verify/simulator/ptx/module.h"

namespace block_attention::simulator::ptx {

struct Token {
    enum class Kind : std::uint8_t {
        identifier,   ///< a name, an opcode, or "_"
        dotted,       ///< a directive, type or modifier with its dot: ".reg", ".2d", ".shared::cta"
        number,       ///< a literal without sign; see Lexer::take_number
        string,       ///< with its quotes
        punctuation,  ///< one character
        end,          ///< of the text
    };
    Kind kind = Kind::end;
    std::string_view text;
    Position position;
};

/// The value of a literal (PTX ISA 4.5).
struct Number {
    std::uint8_t float_bits = 0;  ///< 0: an integer; 32: 0f...; 64: 0d... or a decimal with a point or exponent
    std::uint64_t bits = 0;
};

/// Cuts PTX text into tokens, in one pass, and holds the one that the parser looks at. Every fault is a PtxError.
class Lexer {
  public:
    /// Both must outlive the lexer and every token. Reads the first token.
    Lexer(std::string_view text, const std::string& path);

    [[nodiscard]] const Token& token() const { return token_; }
    [[nodiscard]] bool at(Token::Kind kind) const { return token_.kind == kind; }
    [[nodiscard]] bool at(char punctuation) const {
        return token_.kind == Token::Kind::punctuation && token_.text.front() == punctuation;
    }
    /// Whether the token is this directive, type or modifier, given with its dot.
    [[nodiscard]] bool at(std::string_view dotted) const {
        return token_.kind == Token::Kind::dotted && token_.text == dotted;
    }

    /// Returns the token and moves to the next.
    Token take();
    /// Moves on if the token is this punctuation or dotted word.
    bool accept(char punctuation);
    bool accept(std::string_view dotted);
    /// Takes this punctuation. `where` completes "expected ';' ..." in the message.
    void expect(char punctuation, std::string_view where);
    /// Takes a token of this kind. `what` completes "expected ..." in the message.
    Token expect(Token::Kind kind, std::string_view what);

    /// Takes a literal. Malformed ones, and integers beyond 64 bits, are errors. `what` as in expect.
    Number take_number(std::string_view what);
    /// Takes an integer literal of at most `limit`.
    std::uint64_t take_unsigned(std::string_view what, std::uint64_t limit);
    /// Takes an integer literal with an optional '-', as 64 bits of two's complement.
    std::int64_t take_signed(std::string_view what);

    /// From a '{' to behind the '}' that closes it, without looking at what lies between.
    void skip_block();

    [[noreturn]] void fail(Position position, std::string_view message) const;
    /// "expected `what`, but found the token".
    [[noreturn]] void fail_expected(std::string_view what) const;
    /// "`what` 'the token' is not supported by the simulator".
    [[noreturn]] void fail_unsupported(std::string_view what) const;

  private:
    void advance();
    void skip_blanks();
    void skip_comment();
    void read_string();
    void read_number();
    [[nodiscard]] char peek(std::size_t ahead) const;
    [[nodiscard]] Position here() const;

    std::string_view text_;
    const std::string& path_;
    std::size_t offset_ = 0;  // just behind token_
    std::uint32_t line_ = 1;
    std::size_t line_start_ = 0;
    Token token_;
};

/// The first `limit` characters of a name, for messages: mangled names can be thousands of characters long.
std::string shorten(std::string_view name, std::size_t limit = 200);

}  // namespace block_attention::simulator::ptx
