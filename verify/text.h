#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace block_attention {

/// "65,536".
std::string grouped(std::int64_t number);

/// "1 element", "65,536 elements".
std::string counted(std::int64_t count, std::string_view noun);

/// A share of the bound: "3.21 %", "1.2e+07 %", "infinite".
std::string percent(double share);

enum class Colour { green, red, dim };

/// The text between the escape sequences that colour it, or the text alone.
std::string coloured(std::string_view text, Colour colour, bool enabled);

}  // namespace block_attention
