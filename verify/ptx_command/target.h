#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace block_attention {

/// An architecture as nvcc and PTX call it: sm_90, sm_90a, sm_100f.
struct Target {
    int architecture = 0;
    char suffix = '\0';  ///< 'a' or 'f', or none
};

inline constexpr int kLeastArchitecture = 75;

/// The target of that name, or nothing.
std::optional<Target> parse_target(std::string_view name);

/// What runs a module of that target: the target itself, sm_75 for what is older, and sm_100a for sm_100f.
Target simulated_target(const Target& target);

/// "sm_90a".
std::string to_string(const Target& target);

}  // namespace block_attention
