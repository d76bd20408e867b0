#include "verify/simulator/ptx/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <system_error>

#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator::ptx {

namespace {

// The C library's character classes depend on the locale; PTX is ASCII.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
constexpr bool starts_name(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
constexpr bool continues_name(char c) { return is_word(c) || c == '$'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

constexpr std::string_view kPunctuation = "{}[]()<>,;:+-*/!|@=~&^?";

/// The whole of `digits` as an integer of that base: false if it is anything else or does not fit.
bool to_integer(std::string_view digits, int base, std::uint64_t& value) {
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value, base);
    return result.ec == std::errc() && result.ptr == end;
}

bool to_double(std::string_view digits, double& value) {
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    return result.ec == std::errc() && result.ptr == end;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool to_number(std::string_view text, Number& number) {
    const char prefix = text.size() > 1 && text[0] == '0' ? lower(text[1]) : '\0';
    if (prefix == 'f' || prefix == 'd') {
        number.float_bits = prefix == 'f' ? 32 : 64;
        return text.size() == 2U + number.float_bits / 4U && to_integer(text.substr(2), 16, number.bits);
    }
    const bool hexadecimal = prefix == 'x';
    if (!hexadecimal && text.find_first_of(".eE") != std::string_view::npos) {
        double value = 0;
        number.float_bits = 64;
        if (!to_double(text, value)) return false;
        number.bits = std::bit_cast<std::uint64_t>(value);
        return true;
    }
    if (text.back() == 'U') text.remove_suffix(1);
    if (hexadecimal) return to_integer(text.substr(2), 16, number.bits);
    if (prefix == 'b') return to_integer(text.substr(2), 2, number.bits);
    return to_integer(text, prefix == '\0' ? 10 : 8, number.bits);
}

}  // namespace

std::string shorten(std::string_view name, std::size_t limit) {
    return name.size() <= limit ? std::string(name) : std::string(name.substr(0, limit)) + "...";
}

Lexer::Lexer(std::string_view text, const std::string& path) : text_(text), path_(path) { advance(); }

Token Lexer::take() {
    const Token taken = token_;
    advance();
    return taken;
}

bool Lexer::accept(char punctuation) {
    if (!at(punctuation)) return false;
    advance();
    return true;
}

bool Lexer::accept(std::string_view dotted) {
    if (!at(dotted)) return false;
    advance();
    return true;
}

void Lexer::expect(char punctuation, std::string_view where) {
    if (!accept(punctuation)) fail_expected(fmt::format("'{}' {}", punctuation, where));
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
    if (!at(kind)) fail_expected(what);
    return take();
}

Number Lexer::take_number(std::string_view what) {
    const Token token = expect(Token::Kind::number, what);
    Number number;
    if (!to_number(token.text, number)) {
        fail(token.position, fmt::format("'{}' is not a literal: an integer takes up to 64 bits, 0f is followed by 8 "
                                         "hexadecimal digits, 0d by 16, and a decimal must be within a double's range",
                                         shorten(token.text)));
    }
    return number;
}

std::uint64_t Lexer::take_unsigned(std::string_view what, std::uint64_t limit) {
    const Token token = token_;
    const Number number = take_number(what);
    if (number.float_bits != 0 || number.bits > limit) {
        fail(token.position,
             fmt::format("expected {}, an integer of at most {}, but found '{}'", what, limit, shorten(token.text)));
    }
    return number.bits;
}

std::int64_t Lexer::take_signed(std::string_view what) {
    const bool negative = accept('-');
    constexpr std::uint64_t kMagnitude = std::uint64_t{1} << 63U;
    const std::uint64_t bits = take_unsigned(what, negative ? kMagnitude : std::numeric_limits<std::uint64_t>::max());
    return static_cast<std::int64_t>(negative ? 0 - bits : bits);
}

void Lexer::skip_block() {
    const Position start = token_.position;
    std::size_t depth = 1;
    while (depth > 0) {
        skip_blanks();
        if (offset_ == text_.size()) fail(start, "this '{' is never closed");
        switch (text_[offset_]) {
            case '"':
                read_string();
                break;
            case '{':
                ++depth;
                ++offset_;
                break;
            case '}':
                --depth;
                ++offset_;
                break;
            default:
                ++offset_;
        }
    }
    advance();
}

void Lexer::fail(Position position, std::string_view message) const {
    throw PtxError(ptx::at(path_, position, message));
}

void Lexer::fail_expected(std::string_view what) const {
    const std::string found = at(Token::Kind::end) ? "the end of the text" : fmt::format("'{}'", shorten(token_.text));
    fail(token_.position, fmt::format("expected {}, but found {}", what, found));
}

void Lexer::fail_unsupported(std::string_view what) const {
    fail(token_.position, fmt::format("{} '{}' is not supported by the simulator", what, shorten(token_.text)));
}

void Lexer::advance() {
    skip_blanks();
    token_.position = here();
    const std::size_t begin = offset_;
    if (begin == text_.size()) {
        token_.kind = Token::Kind::end;
        token_.text = {};
        return;
    }
    const char first = text_[begin];
    if (starts_name(first)) {
        token_.kind = Token::Kind::identifier;
        ++offset_;
        while (continues_name(peek(0))) ++offset_;
    } else if (first == '.' && is_word(peek(1))) {
        token_.kind = Token::Kind::dotted;
        ++offset_;
        while (is_word(peek(0)) || (peek(0) == ':' && peek(1) == ':' && is_word(peek(2)))) {
            offset_ += peek(0) == ':' ? 2 : 1;
        }
    } else if (is_digit(first)) {
        token_.kind = Token::Kind::number;
        read_number();
    } else if (first == '"') {
        token_.kind = Token::Kind::string;
        read_string();
    } else if (kPunctuation.find(first) != std::string_view::npos) {
        token_.kind = Token::Kind::punctuation;
        ++offset_;
    } else {
        const bool printable = first > ' ' && first <= '~';
        fail(here(), printable ? fmt::format("unexpected character '{}'", first)
                               : fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(first)));
    }
    token_.text = text_.substr(begin, offset_ - begin);
}

void Lexer::skip_blanks() {
    while (offset_ < text_.size()) {
        const char c = text_[offset_];
        if (c == '\n') {
            line_start_ = ++offset_;
            ++line_;
        } else if (is_blank(c)) {
            ++offset_;
        } else if (c == '/' && peek(1) == '/') {
            offset_ = std::min(text_.find('\n', offset_), text_.size());
        } else if (c == '/' && peek(1) == '*') {
            skip_comment();
        } else {
            return;
        }
    }
}

void Lexer::skip_comment() {
    const std::size_t close = text_.find("*/", offset_ + 2);
    if (close == std::string_view::npos) fail(here(), "this comment is never closed by '*/'");
    for (; offset_ < close; ++offset_) {
        if (text_[offset_] != '\n') continue;
        line_start_ = offset_ + 1;
        ++line_;
    }
    offset_ = close + 2;
}

/// PTX strings have no escapes.
void Lexer::read_string() {
    const std::size_t close = text_.find_first_of("\"\n", offset_ + 1);
    if (close == std::string_view::npos || text_[close] == '\n') {
        fail(here(), "this string is not closed before the end of its line");
    }
    offset_ = close + 1;
}

/// Takes whatever can belong to a literal; take_number judges it.
void Lexer::read_number() {
    const auto skip_digits = [this] {
        while (is_digit(peek(0))) ++offset_;
    };
    skip_digits();
    if (peek(0) == '.') {
        ++offset_;
        skip_digits();
    }
    if (lower(peek(0)) == 'e' && (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
        offset_ += 2;
        skip_digits();
    }
    while (is_word(peek(0))) ++offset_;
}

char Lexer::peek(std::size_t ahead) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }

Position Lexer::here() const { return {line_, static_cast<std::uint32_t>(offset_ - line_start_ + 1)}; }

}  // namespace block_attention::simulator::ptx
