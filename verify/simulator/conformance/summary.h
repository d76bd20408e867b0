#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/conformance/execute.h"
#include "verify/simulator/conformance/results_file.h"

namespace block_attention::conformance {

/// Forms that the simulator refuses, and why.
struct Refusal {
    std::string_view pattern;  ///< of the forms' names; '*' stands for any text
    std::string_view reason;
};

/// All that it refuses. A form that is refused and not listed here is a fault, and so is one listed and not refused.
std::span<const Refusal> known_refusals();

/// Whether a name fits a pattern.
bool matches(std::string_view name, std::string_view pattern);

/// How the simulator compares with a GPU, form by form.
class Comparison {
  public:
    /// Runs all forms that the file has results of.
    Comparison(std::span<const Form> candidates, const ResultsFile& file);

    /// What is wrong, a line each: other results, findings, refusals that nobody knows of. Empty if nothing is.
    [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

    /// Tables in Markdown for the documentation: the groups of forms, and what is refused.
    [[nodiscard]] std::string group_table() const;
    [[nodiscard]] std::string refusal_table() const;

  private:
    struct Group {
        std::string name;
        std::size_t equal = 0;
        std::size_t refused = 0;
    };

    void judge(const Form& form, const Simulated& simulated, const Hashes& expected);
    void judge_refusal(const Form& form, const std::string& message);

    std::vector<Group> groups_;
    std::vector<std::size_t> refusals_;  ///< how many forms each known refusal covers
    std::vector<std::string> faults_;
};

}  // namespace block_attention::conformance
