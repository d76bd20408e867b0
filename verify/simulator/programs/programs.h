#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reference/launch.h"
#include "verify/simulator/layout/instruction_descriptor.h"
#include "verify/simulator/layout/matrix_descriptor.h"

/// Matrix products for Hopper and Blackwell, each with one more idea than the one before, as programs for the
/// simulator: they use what the fast stages will use, and nothing of attention.
namespace block_attention::programs {

/// Of C = A B, all row-major: A is m x k, B is k x n, C is m x n elements. n and k are multiples of 8, as rows must be
/// of 16 bytes for the tensor copies; nothing needs to be a multiple of a tile.
struct Shape {
    std::uint32_t m = 0;
    std::uint32_t n = 0;
    std::uint32_t k = 0;
};

/// The numbers that a kernel's correctness hangs on. The defaults fit every program but for `instruction` and
/// `expect_bytes`, which Program::settings has. Tests make one of them wrong.
struct Settings {
    simulator::MatrixDescriptor a{0, 16, 1024, 0, simulator::SwizzleMode::b128};  ///< K-major: LBO has no effect
    simulator::MatrixDescriptor b{0, 8192, 1024, 0, simulator::SwizzleMode::b128};
    simulator::InstructionDescriptor instruction{};  ///< Blackwell
    std::uint32_t expect_bytes = 0;                  ///< per stage
    std::uint32_t full_parity = 0;                   ///< of the first wait, as the three below
    std::uint32_t empty_parity = 1;
    std::uint32_t accumulator_full_parity = 0;   ///< Blackwell
    std::uint32_t accumulator_empty_parity = 1;  ///< blackwell_gemm_warp_specialized
    Swizzle a_swizzle = Swizzle::b128;           ///< of the tensor maps; without one where there is no map
    Swizzle b_swizzle = Swizzle::b128;
    Swizzle c_swizzle = Swizzle::b128;
};

/// One kernel and how it is launched. Its buffers are the operands kA, kB and kC.
struct Program {
    std::string_view name;  ///< also the kernel's
    std::string_view summary;
    int architecture = 0;  ///< 90: sm_90a, 100: sm_100a
    const KernelModule& (*module)() = nullptr;
    DType factors{};  ///< of A and B
    DType sums{};     ///< of C
    Settings settings;
    /// What tests run: several tiles, enough steps along k that every barrier goes through several phases; the second
    /// shape has ragged edges everywhere.
    std::vector<Shape> shapes;
    Plan (*make_plan)(const Program& program, const Shape& shape, const Settings& settings) = nullptr;

    /// The launch for a shape. Throws std::invalid_argument for one that the program doesn't serve.
    [[nodiscard]] Plan plan(const Shape& shape, const Settings& with) const;
};

inline constexpr Operand kA = Operand::q;
inline constexpr Operand kB = Operand::k;
inline constexpr Operand kC = Operand::o;

/// All of them, Hopper's first.
std::span<const Program> all_programs();

/// The program of that name. Throws std::invalid_argument with the names there are.
const Program& program_named(std::string_view name);

}  // namespace block_attention::programs
