#include "verify/simulator/programs/product.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "reference/dtype.h"
#include "verify/cases/random.h"
#include "verify/device/simulator_device.h"

namespace block_attention::programs {
namespace {

/// Fills `elements` with a rows x columns matrix; returns the same in double.
Matrix fill(std::vector<std::byte>& elements, DType dtype, Input input, std::uint32_t rows, std::uint32_t columns,
            const CounterRandom& random) {
    const auto bytes = static_cast<std::size_t>(size_of(dtype));
    Matrix matrix(rows, columns);
    elements.resize(bytes * rows * columns);
    for (std::uint64_t i = 0; i < std::uint64_t{rows} * columns; ++i) {
        const double value = input == Input::integers ? static_cast<double>(random.bits(i) % 7) - 3
                                                      : round_to(dtype, static_cast<double>(random.normal(i)));
        store_element(dtype, elements.data() + i * bytes, value);
        matrix.data()[i] = value;
    }
    return matrix;
}

/// Bounds what the tensor core's steps lose; see make_product().
Matrix error_of(const Matrix& a, const Matrix& b) {
    constexpr Eigen::Index kStep = 16;
    const double cut_terms = (kStep + 1) * std::ldexp(1.0, -25);
    const double cut_result = std::ldexp(1.0, -23);
    Eigen::ArrayXXd sum = Eigen::ArrayXXd::Zero(a.rows(), b.cols());
    Eigen::ArrayXXd error = sum;
    for (Eigen::Index k = 0; k < a.cols(); k += kStep) {
        const Eigen::Index terms = std::min(kStep, a.cols() - k);
        const auto columns = a.middleCols(k, terms);
        const auto rows = b.middleRows(k, terms);
        const Eigen::ArrayXXd largest_product =
            (columns.cwiseAbs().rowwise().maxCoeff() * rows.cwiseAbs().colwise().maxCoeff()).array();
        error += cut_terms * largest_product.max(sum.abs() + error);
        sum += (columns * rows).array();
        error += cut_result * (sum.abs() + error);
    }
    // Eigen's own roundings: 2^-53 of the sum of absolute values, once an addition.
    const Matrix absolute = a.cwiseAbs() * b.cwiseAbs();
    return error.matrix() + absolute * (static_cast<double>(a.cols()) * std::ldexp(1.0, -53));
}

}  // namespace

std::string_view name_of(Input input) { return input == Input::integers ? "integers" : "normal"; }

Product make_product(const Program& program, const Shape& shape, Input input, std::uint64_t seed) {
    Product product{.shape = shape, .sums = program.sums, .a = {}, .b = {}, .expected = {}, .error = {}};
    const Matrix a = fill(product.a, program.factors, input, shape.m, shape.k, CounterRandom(seed, 0));
    const Matrix b = fill(product.b, program.factors, input, shape.k, shape.n, CounterRandom(seed, 1));
    product.expected = a * b;
    product.error = input == Input::integers ? Matrix::Zero(a.rows(), b.cols()) : error_of(a, b);
    return product;
}

std::unique_ptr<Device> open_simulator(const Program& program, std::uint64_t seed) {
    SimulatorDeviceOptions options;
    options.architecture = program.architecture;
    options.seed = seed;
    return open_simulator_device(options);
}

Outcome run_product(Device& device, const Plan& plan, const Product& product) {
    constexpr std::byte kPoison{0xFF};
    Outcome outcome;
    outcome.c.resize(static_cast<std::size_t>(product.expected.size()) *
                     static_cast<std::size_t>(size_of(product.sums)));
    const DevicePointer a = device.allocate(product.a.size(), "A");
    const DevicePointer b = device.allocate(product.b.size(), "B");
    const DevicePointer c = device.allocate(outcome.c.size(), "C");
    device.copy_to_device(a, product.a);
    device.copy_to_device(b, product.b);
    device.poison(c, outcome.c.size(), kPoison);
    std::array<DevicePointer, kOperands> operands{};
    operands[static_cast<std::size_t>(kA)] = a;
    operands[static_cast<std::size_t>(kB)] = b;
    operands[static_cast<std::size_t>(kC)] = c;
    try {
        run_plan(device, plan, operands);
        device.copy_to_host(outcome.c, c);
        for (const DevicePointer pointer : {a, b, c}) device.free(pointer);
    } catch (const DeviceError& error) {
        outcome.death = error.what();  // and the buffers go with the device
    }
    outcome.findings = device.take_findings();
    return outcome;
}

std::optional<std::string> find_mismatch(const Product& product, const std::vector<std::byte>& c) {
    const auto bytes = static_cast<std::size_t>(size_of(product.sums));
    for (Eigen::Index m = 0; m < product.expected.rows(); ++m) {
        for (Eigen::Index n = 0; n < product.expected.cols(); ++n) {
            const auto index = static_cast<std::size_t>(m * product.expected.cols() + n);
            const double got = load_element(product.sums, c.data() + index * bytes);
            // Rounding to C's type is monotonic, so it maps the interval of right sums to the interval of right
            // elements.
            const double least = round_to(product.sums, product.expected(m, n) - product.error(m, n));
            const double most = round_to(product.sums, product.expected(m, n) + product.error(m, n));
            if (!(got >= least && got <= most)) {  // NaN is in no interval
                return fmt::format("C[{}, {}] is {}; A B is {}, with an error up to {}", m, n, got,
                                   product.expected(m, n), product.error(m, n));
            }
        }
    }
    return std::nullopt;
}

std::uint64_t checksum(const std::vector<std::byte>& bytes) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3ULL;
    return hash;
}

}  // namespace block_attention::programs
