#include "verify/ptx_command/target.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace block_attention {

std::optional<Target> parse_target(std::string_view name) {
    constexpr std::string_view kPrefix = "sm_";
    if (!name.starts_with(kPrefix)) return std::nullopt;
    const std::string_view digits = name.substr(kPrefix.size());
    Target target;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), target.architecture);
    const std::string_view suffix = digits.substr(static_cast<std::size_t>(end - digits.data()));
    constexpr int kMost = 999;
    if (error != std::errc{} || target.architecture < 1 || target.architecture > kMost) return std::nullopt;
    if (suffix == "a" || suffix == "f") {
        target.suffix = suffix.front();
    } else if (!suffix.empty()) {
        return std::nullopt;
    }
    return target;
}

Target simulated_target(const Target& target) {
    return {std::max(target.architecture, kLeastArchitecture), target.suffix == '\0' ? '\0' : 'a'};
}

std::string to_string(const Target& target) {
    const std::string_view suffix(&target.suffix, target.suffix == '\0' ? 0 : 1);
    return fmt::format("sm_{}{}", target.architecture, suffix);
}

}  // namespace block_attention
