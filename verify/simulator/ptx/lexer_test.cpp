#include "verify/simulator/ptx/lexer.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator::ptx {
namespace {

const std::string kPath = "t.ptx";

std::vector<std::string> texts(std::string_view text) {
    std::vector<std::string> result;
    for (Lexer lexer(text, kPath); !lexer.at(Token::Kind::end);) result.emplace_back(lexer.take().text);
    return result;
}

Number number(std::string_view text) {
    Lexer lexer(text, kPath);
    const Number result = lexer.take_number("a number");
    REQUIRE(lexer.at(Token::Kind::end));
    return result;
}

bool is_number(std::string_view text) {
    try {
        Lexer lexer(text, kPath);
        lexer.take_number("a number");
        return true;
    } catch (const PtxError&) {
        return false;
    }
}

double as_double(std::string_view text) {
    const Number result = number(text);
    REQUIRE(result.float_bits == 64);
    return std::bit_cast<double>(result.bits);
}

std::string error_of(std::string_view text) {
    try {
        texts(text);
    } catch (const PtxError& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("opcodes, modifiers and names are cut apart") {
    using Texts = std::vector<std::string>;
    CHECK(texts("ld.global.L2::128B.v4.u32 {%r1,$x};") ==
          Texts{"ld", ".global", ".L2::128B", ".v4", ".u32", "{", "%r1", ",", "$x", "}", ";"});
    CHECK(texts("tcgen05.fence::before_thread_sync;") == Texts{"tcgen05", ".fence::before_thread_sync", ";"});
    CHECK(texts("x.multicast::cluster::all.2d.32x32b") == Texts{"x", ".multicast::cluster::all", ".2d", ".32x32b"});
    CHECK(texts("L: @!p bra L;_|q") == Texts{"L", ":", "@", "!", "p", "bra", "L", ";", "_", "|", "q"});
    CHECK(texts("%tid.x %r<12>") == Texts{"%tid", ".x", "%r", "<", "12", ">"});
    CHECK(texts("[a+-4] 1.5 0f3F800000 \"a b;\"") ==
          Texts{"[", "a", "+", "-", "4", "]", "1.5", "0f3F800000", "\"a b;\""});
    CHECK(texts(" \t\r\n").empty());
}

TEST_CASE("comments are blanks") {
    CHECK(texts("a// b\nc/*d\n/* ** */e/**/f//") == std::vector<std::string>{"a", "c", "e", "f"});
}

TEST_CASE("positions count lines and columns from 1, through comments") {
    Lexer lexer("ab /* \n\n */ cd\n\tef", kPath);
    CHECK(lexer.token().position.line == 1);
    CHECK(lexer.take().position.column == 1);
    CHECK(lexer.token().position.line == 3);
    CHECK(lexer.take().position.column == 5);
    CHECK(lexer.token().position.line == 4);
    CHECK(lexer.take().position.column == 2);
}

TEST_CASE("integers in every base") {
    CHECK(number("0").bits == 0);
    CHECK(number("42").bits == 42);
    CHECK(number("42U").bits == 42);
    CHECK(number("0x1fE").bits == 0x1fe);
    CHECK(number("0XFFU").bits == 255);
    CHECK(number("017").bits == 15);
    CHECK(number("0b101U").bits == 5);
    CHECK(number("18446744073709551615").bits == ~std::uint64_t{0});
    CHECK(number("42").float_bits == 0);
}

TEST_CASE("floats by their bits and in decimal") {
    CHECK(number("0f3F800000").bits == 0x3f800000);
    CHECK(number("0F3f800000").float_bits == 32);
    CHECK(number("0d3FF8000000000000").bits == 0x3ff8000000000000);
    CHECK(number("0d3FF8000000000000").float_bits == 64);
    CHECK(as_double("1.5") == 1.5);
    CHECK(as_double("1.") == 1.0);
    CHECK(as_double("2e3") == 2000.0);
    CHECK(as_double("25.0e-1") == 2.5);
    CHECK(as_double("0.5") == 0.5);
}

TEST_CASE("what only looks like a number is refused") {
    for (const char* text : {"08", "0x", "0xG", "0b2", "12ab", "0f3F80000", "0f3F8000000", "0d3FF8", "1e999",
                             "18446744073709551616", "3u", "1.5U"}) {
        CAPTURE(text);
        CHECK_FALSE(is_number(text));
    }
}

TEST_CASE("signed and bounded integers") {
    CHECK(Lexer("-9223372036854775808", kPath).take_signed("x") == std::numeric_limits<std::int64_t>::min());
    CHECK(Lexer("-1", kPath).take_signed("x") == -1);
    CHECK(Lexer("18446744073709551615", kPath).take_signed("x") == -1);
    CHECK_THROWS_AS(Lexer("-9223372036854775809", kPath).take_signed("x"), PtxError);
    CHECK(Lexer("7", kPath).take_unsigned("x", 7) == 7);
    CHECK_THROWS_WITH_AS(Lexer("8", kPath).take_unsigned("a count", 7),
                         "t.ptx:1:1: expected a count, an integer of at most 7, but found '8'", PtxError);
    CHECK_THROWS_AS(Lexer("1.0", kPath).take_unsigned("x", 7), PtxError);
}

TEST_CASE("a block is skipped with the braces, strings and comments in it") {
    Lexer lexer("{ .b8 1\n{ } # \"}\" // }\n /* } */ } after", kPath);
    lexer.skip_block();
    CHECK(lexer.token().text == "after");
    CHECK(lexer.token().position.line == 3);
}

TEST_CASE("faults of the text name their place") {
    CHECK(error_of("a\n /* b") == "t.ptx:2:2: this comment is never closed by '*/'");
    CHECK(error_of("\"ab\ncd\"") == "t.ptx:1:1: this string is not closed before the end of its line");
    CHECK(error_of("\"ab") == "t.ptx:1:1: this string is not closed before the end of its line");
    CHECK(error_of("a #") == "t.ptx:1:3: unexpected character '#'");
    CHECK(error_of("a \xe2") == "t.ptx:1:3: unexpected byte 0xe2");
    CHECK(error_of(std::string_view("a\0", 2)) == "t.ptx:1:2: unexpected byte 0x00");
    CHECK(error_of("a . b") == "t.ptx:1:3: unexpected character '.'");
    Lexer open("x { {}", kPath);
    open.take();
    CHECK_THROWS_WITH_AS(open.skip_block(), "t.ptx:1:3: this '{' is never closed", PtxError);
}

}  // namespace
}  // namespace block_attention::simulator::ptx
