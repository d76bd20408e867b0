#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/ptx_command/buffer.h"

namespace block_attention {

/// What a buffer is expected to hold after the launch.
struct Expectation {
    std::size_t buffer = 0;
    ArraySpec array;  ///< of the buffer's shape; within a tolerance possibly of another type
    /// An element c passes if |c - e| <= absolute + relative * |e|. Nothing: if it has e's bits.
    struct Tolerance {
        double absolute = 0;
        double relative = 0;
    };
    std::optional<Tolerance> tolerance;
};

/// What came of comparing a buffer with what was expected.
struct Agreement {
    std::size_t buffer = 0;
    std::int64_t elements = 0;
    std::int64_t wrong = 0;
    double largest_difference = 0;  ///< |c - e| over all elements where both are numbers; within a tolerance only
    std::string first_wrong;        ///< "y[3, 17]: computed 0.5, expected 0.25"
};

/// Reads the expectations of a launch spec: an object of buffer names.
std::vector<Expectation> read_expectations(const JsonValue& object, const std::vector<BufferSpec>& buffers,
                                           const std::filesystem::path& folder);

/// Compares. A NaN agrees with a NaN alone, an infinity with itself alone.
Agreement compare(const Expectation& expectation, const BufferSpec& buffer, std::span<const std::byte> computed,
                  std::span<const std::byte> expected);

/// "y[3, 17]": the name of an element, whose number is in row-major order.
std::string element_name(const BufferSpec& buffer, std::int64_t number);

}  // namespace block_attention
