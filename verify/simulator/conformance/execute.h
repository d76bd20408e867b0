#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "verify/device/device.h"
#include "verify/simulator/conformance/form.h"

namespace block_attention::conformance {

/// What a form's results are known by: a hash of each quarter's results.
using Hashes = std::array<std::uint32_t, kQuarters>;

/// The results of all tuples: result j of tuple t at j * kTuples + t, zero-extended.
using Results = std::vector<std::uint64_t>;

Hashes hash(const Form& form, const Results& results);

/// Operands by the kinds of a form's operands. They are made once and then only read.
class TupleTable {
  public:
    explicit TupleTable(std::span<const Form> forms);
    [[nodiscard]] const std::vector<std::uint64_t>& of(const Form& form) const { return tuples_.at(form.operands); }

  private:
    std::map<std::string, std::vector<std::uint64_t>, std::less<>> tuples_;
};

/// Runs forms on one device.
class Executor {
  public:
    /// Both are kept by reference.
    Executor(Device& device, const TupleTable& tuples);

    /// Runs the form's kernel of that name in a module. Throws DeviceError if the device refuses it.
    Results run(const Form& form, const KernelModule& module, std::string_view kernel);

  private:
    DevicePointer upload(const Form& form);

    Device& device_;
    const TupleTable& tuples_;
    std::map<std::string, DevicePointer> operands_;
    DevicePointer results_;
    DevicePointer memory_;
    std::vector<std::byte> blank_;
};

/// Results of a form on the simulator, or why it refuses the form.
struct Simulated {
    Results results;
    std::string refusal;                ///< empty if it ran
    std::vector<std::string> findings;  ///< what it reported; no form does anything wrong
};

/// Runs forms on a simulated sm_90a.
class SimulatorExecutor {
  public:
    explicit SimulatorExecutor(const TupleTable& tuples);
    Simulated run(const Form& form);

  private:
    std::unique_ptr<Device> device_;
    Executor executor_;
    std::vector<std::unique_ptr<std::string>> texts_;
    std::vector<std::unique_ptr<KernelModule>> modules_;  ///< the device knows them by address
};

/// All forms on the simulator, on all cores.
std::vector<Simulated> simulate(std::span<const Form> forms, const TupleTable& tuples);

}  // namespace block_attention::conformance
