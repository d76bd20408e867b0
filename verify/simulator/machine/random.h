#pragma once
#include <cstdint>

namespace block_attention::simulator {

/// A small reproducible generator (SplitMix64): the schedule of a CTA is a function of the seed and the CTA's number.
class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t stream) : state_(seed * 0x9E3779B97F4A7C15 ^ mix(stream + 1)) {}

    std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
    /// Uniform in [0, bound), but for a bias of less than bound / 2^32.
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }

  private:
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }

    std::uint64_t state_;
};

}  // namespace block_attention::simulator
