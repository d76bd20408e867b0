#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "verify/io/element_type.h"
#include "verify/io/npy.h"
#include "verify/ptx_command/json_value.h"

namespace block_attention {

/// What a buffer holds before the launch, or is expected to hold after it.
struct Content {
    enum class Kind : std::uint8_t {
        poison,    ///< never written: what reads it is a finding
        zeros,     ///< +0
        indices,   ///< element i is i, modulo 2^bits for integers
        normal,    ///< mean and deviation in `range`; floating-point only
        uniform,   ///< from range[0] to below range[1]; floating-point only
        integers,  ///< from range[0] to range[1], both included
        given,     ///< `array`: the bytes of a .npy file or of a list of values
    };
    Kind kind = Kind::poison;
    std::array<double, 2> range{};
    std::int64_t least = 0;             ///< of the integers
    std::uint64_t span = 0;             ///< their largest less their least
    std::vector<std::byte> bytes{};     ///< if given
    std::optional<std::uint64_t> seed;  ///< else the run's
};

/// An array's type, shape and content.
struct ArraySpec {
    ElementType type = ElementType::f32;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    Content content;

    [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(elements) * size_of(type); }
};

/// The keys that read_array takes.
std::span<const std::string> array_keys();

/// Reads "dtype", "shape", "content" and "seed" of an object. A .npy file, whose path is relative to `folder`, gives
/// its own type and shape if they are missing, and must agree with them otherwise. `like` gives them where neither
/// does.
ArraySpec read_array(const JsonValue& object, const std::filesystem::path& folder, const ArraySpec* like = nullptr);

/// The bytes of a content that is not poison. Random numbers depend on the seed and the element's index, and, where
/// the run's seed is taken, on `stream`.
std::vector<std::byte> make_content(const ArraySpec& array, std::uint64_t run_seed, std::uint64_t stream);

}  // namespace block_attention
