#pragma once
#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/device/device.h"
#include "verify/simulator/programs/programs.h"

/// Inputs of the programs, what must come out, and one run of a program on a device.
namespace block_attention::programs {

enum class Input : std::uint8_t {
    integers,  ///< -3 .. 3: every sum is exact, so C has one right bit pattern
    normal,    ///< mean 0, variance 1
};
std::string_view name_of(Input input);

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A product to compute, and its solution.
struct Product {
    Shape shape;
    DType sums{};                 ///< type of C
    std::vector<std::byte> a, b;  ///< elements of the program's type, row-major
    Matrix expected;              ///< A B by Eigen, in double
    Matrix error;                 ///< how far a sum may be from it, before it is rounded to C's type
};

/// Factors that depend on the arguments alone. The error follows the tensor core's model step by step: in steps of 16
/// along k, 16 products and the sum so far are each cut to a multiple of 2^-25 of the largest one's power of two,
/// added, and the result is cut to fp32 (measured on H200).
Product make_product(const Program& program, const Shape& shape, Input input, std::uint64_t seed = 1);

/// What came of a launch.
struct Outcome {
    std::vector<std::byte> c;
    std::vector<Finding> findings;
    std::string death;  ///< why the launch was refused or died; empty if it ended
};

/// A simulated GPU of the program's architecture.
std::unique_ptr<Device> open_simulator(const Program& program, std::uint64_t seed);

/// Runs a plan of the program. C is poisoned first.
Outcome run_product(Device& device, const Plan& plan, const Product& product);

/// The first element of C that is not within its error, in words: with integers, that is not the right number.
std::optional<std::string> find_mismatch(const Product& product, const std::vector<std::byte>& c);

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
std::uint64_t checksum(const std::vector<std::byte>& bytes);

}  // namespace block_attention::programs
