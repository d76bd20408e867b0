#pragma once
#include <cstdint>

namespace block_attention::programs {

/// What a program's kernel would normally have as constants. It gets them as a parameter, so that a test can make any
/// of them wrong without compiling again.
struct KernelSettings {
    std::uint64_t a_descriptor;  ///< of wgmma or tcgen05.mma, without the address; of no use with A in Tensor Memory
    std::uint64_t b_descriptor;
    std::uint32_t instruction_descriptor;  ///< of tcgen05.mma
    std::uint32_t expect_bytes;            ///< that the tensor copies of one stage bring
    std::uint32_t full_parity;             ///< parities of the first waits: 0 for what must first happen,
    std::uint32_t empty_parity;            ///< 1 for what is so from the start
    std::uint32_t accumulator_full_parity;
    std::uint32_t accumulator_empty_parity;
};

}  // namespace block_attention::programs
