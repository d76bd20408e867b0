#pragma once
#include <cstdint>
#include <string_view>

namespace block_attention::simulator {

class Cta;
class Warp;

/// How a special register (PTX ISA 10) changes while a warp runs.
enum class SpecialKind : std::uint8_t {
    unknown,  ///< not a special register that is simulated
    fixed,    ///< known when the CTA starts: read as a constant
    clock,    ///< grows: %clock, %clock64, %globaltimer; read by mov alone
};

SpecialKind special_kind(std::string_view name);

/// The value of a fixed special register, or of WARP_SZ, for a lane.
std::uint64_t special_register(std::string_view name, const Cta& cta, const Warp& warp, unsigned lane);

}  // namespace block_attention::simulator
