#include "verify/text.h"

#include <fmt/core.h>

#include <cmath>

namespace block_attention {

std::string grouped(std::int64_t number) {
    std::string digits = fmt::format("{}", number);
    const std::ptrdiff_t first = number < 0 ? 1 : 0;
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > first; i -= 3) {
        digits.insert(static_cast<std::size_t>(i), 1, ',');
    }
    return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string percent(double share) {
    constexpr double kLargestFixed = 10000;
    if (std::isinf(share)) return "infinite";
    const double value = 100 * share;
    return value < kLargestFixed ? fmt::format("{:.2f} %", value) : fmt::format("{:.1e} %", value);
}

std::string coloured(std::string_view text, Colour colour, bool enabled) {
    if (!enabled) return std::string(text);
    const std::string_view code = colour == Colour::green ? "32" : colour == Colour::red ? "1;31" : "2";
    return fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace block_attention
