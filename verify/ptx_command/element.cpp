#include "verify/ptx_command/element.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace block_attention {
namespace {

std::uint64_t parse_bits(const JsonValue& value, std::string_view text, ElementType type) {
    const std::string_view digits = text.substr(2);
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    const auto width = static_cast<unsigned>(8 * size_of(type));
    if (error != std::errc{} || end != digits.data() + digits.size() || (width < 64 && bits >> width != 0)) {
        value.fail(fmt::format("\"{}\" is not the bits of a {}: 0x and up to {} hexadecimal digits", text,
                               name_of(type), width / 4));
    }
    return bits;
}

/// One of the texts that stand for numbers that JSON lacks.
double parse_special(const JsonValue& value, std::string_view text, ElementType type) {
    if (is_floating(type)) {
        if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
        if (text == "inf") return std::numeric_limits<double>::infinity();
        if (text == "-inf") return -std::numeric_limits<double>::infinity();
    }
    value.fail(fmt::format("\"{}\" is not a {}: write a number{}, or the bits as \"0x...\"", text, name_of(type),
                           is_floating(type) ? ", \"nan\", \"inf\", \"-inf\"" : ""));
}

}  // namespace

void append_element(const JsonValue& value, ElementType type, std::vector<std::byte>& bytes) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + size_of(type));
    std::byte* to = bytes.data() + begin;
    if (value.is_string()) {
        const std::string text = value.string();
        if (text.starts_with("0x")) return store_integer(type, parse_bits(value, text, type), to);
        return store_floating(type, parse_special(value, text, type), to);
    }
    if (!is_floating(type)) {
        const std::uint64_t most = largest_exact_integer(type);
        const auto least = is_signed(type) ? static_cast<std::int64_t>(~most) : std::int64_t{0};
        return store_integer(type, value.integer(least, most), to);
    }
    const double number = value.number();
    store_floating(type, number, to);
    if (std::isinf(load_element(type, to))) {
        value.fail(fmt::format("{} is too large for a {}; write \"inf\" if that is meant", number, name_of(type)));
    }
}

std::string bits_of(ElementType type, const std::byte* data) {
    std::string text = "0x";
    for (std::size_t i = size_of(type); i-- > 0;) text += fmt::format("{:02x}", std::to_integer<unsigned>(data[i]));
    return text;
}

std::string decimal_of(ElementType type, const std::byte* data) {
    const long double value = load_element(type, data);
    if (type == ElementType::f64) return fmt::format("{}", static_cast<double>(value));
    if (is_floating(type)) return fmt::format("{}", static_cast<float>(value));
    return is_signed(type) ? fmt::format("{}", static_cast<std::int64_t>(value))
                           : fmt::format("{}", static_cast<std::uint64_t>(value));
}

}  // namespace block_attention
