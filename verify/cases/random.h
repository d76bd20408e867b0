#pragma once
#include <cstdint>

namespace block_attention {

/// A bijection of 64-bit numbers whose every output bit depends on every input bit: the finalizer of SplitMix64
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

/// Random numbers by index: number `index` of a stream is computed, not drawn, so any thread can have any of them.
class CounterRandom {
  public:
    constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed + kStep) + stream * kStep)) {}

    /// 64 random bits.
    [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const { return mix(key_ + index * kStep); }

    /// A number of mean 0, variance 1 and nearly normal distribution: the sum of eight uniform ones. It stays below 4.9
    /// and takes integer arithmetic and one rounding, so it is the same on every machine, which a logarithm's isn't.
    [[nodiscard]] constexpr float normal(std::uint64_t index) const {
        const std::uint64_t first = bits(index);
        const std::int32_t sum = sum_of_quarters(first) + sum_of_quarters(mix(first + kStep));
        constexpr std::int32_t kMean = 8 * 65535 / 2;
        constexpr float kPerDeviation = 1.0F / 53509.9F;  // 65536 * sqrt(8 / 12)
        return static_cast<float>(sum - kMean) * kPerDeviation;
    }

  private:
    static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio, odd

    static constexpr std::int32_t sum_of_quarters(std::uint64_t bits) {
        constexpr std::uint64_t kQuarter = 0xFFFF;
        return static_cast<std::int32_t>((bits & kQuarter) + ((bits >> 16) & kQuarter) + ((bits >> 32) & kQuarter) +
                                         (bits >> 48));
    }

    std::uint64_t key_;
};

}  // namespace block_attention
