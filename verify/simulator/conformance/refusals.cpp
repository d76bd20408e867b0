#include <array>

#include "verify/simulator/conformance/summary.h"

namespace block_attention::conformance {

namespace {

constexpr std::array<Refusal, 1> kRefusals{{
    {"*.approx*", "x"},
}};

}  // namespace

std::span<const Refusal> known_refusals() { return kRefusals; }

}  // namespace block_attention::conformance
