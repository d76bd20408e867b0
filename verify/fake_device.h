#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reference/oracle.h"
#include "verify/host_device.h"

namespace block_attention::testing {

/// A stage for tests whose one launch carries the problem itself, so that a FakeDevice can solve it.
inline const Stage& fake_stage() {
    static const Stage kStage{
        .name = "fake",
        .summary = "what a test wants",
        .plan = [](const Problem& problem) -> PlanResult {
            if (problem.block_size > 1024) return Refusal{"a block of more than 1024 tokens"};
            Launch launch;
            launch.kernel = "fake";
            for (const Operand operand : {Operand::q, Operand::k, Operand::v, Operand::o}) {
                launch.arguments.emplace_back(BufferArgument{operand});
            }
            launch.arguments.emplace_back(value_argument(reinterpret_cast<std::uintptr_t>(&problem)));
            return Plan{.tables = {}, .launches = {launch}};
        },
        .run_on_host = nullptr,
        .arithmetic = oracle_stage().arithmetic};
    return kStage;
}

/// A device that runs a function of the test as the fake stage's kernel, on tensors in host memory.
class FakeDevice : public HostDevice {
  public:
    using Kernel = std::function<void(const Problem& problem)>;

    explicit FakeDevice(Kernel kernel = run_oracle) : kernel_(std::move(kernel)) {}

    void launch(const DeviceLaunch& launch) override {
        const auto pointer = [&](std::size_t parameter) {
            void* value = nullptr;
            std::memcpy(&value, launch.parameters.at(parameter).bytes.data(), sizeof(value));
            return value;
        };
        Problem problem = *static_cast<const Problem*>(pointer(4));
        problem.q.data = pointer(0);
        problem.k.data = pointer(1);
        problem.v.data = pointer(2);
        problem.o.data = pointer(3);
        kernel_(problem);
    }
    std::vector<Finding> take_findings() override { return std::exchange(findings, {}); }

    std::vector<Finding> findings;  ///< returned once

  private:
    Kernel kernel_;
};

}  // namespace block_attention::testing
