#include "verify/simulator/conformance/summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace block_attention::conformance {

bool matches(std::string_view name, std::string_view pattern) {
    if (pattern.empty()) return name.empty();
    if (pattern.front() != '*')
        return !name.empty() && name.front() == pattern.front() && matches(name.substr(1), pattern.substr(1));
    for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
        if (matches(name.substr(skipped), pattern.substr(1))) return true;
    }
    return false;
}

Comparison::Comparison(std::span<const Form> candidates, const ResultsFile& file) : refusals_(known_refusals().size()) {
    std::vector<Form> forms;
    for (const auto& form : candidates) {
        if (file.hashes.contains(form.name)) forms.push_back(form);
    }
    const TupleTable tuples(forms);
    const auto simulated = simulate(forms, tuples);
    for (std::size_t i = 0; i < forms.size(); ++i) judge(forms[i], simulated[i], file.hashes.at(forms[i].name));
    for (std::size_t i = 0; i < refusals_.size(); ++i) {
        if (refusals_[i] == 0)
            faults_.push_back(fmt::format("nothing that fits '{}' is refused", known_refusals()[i].pattern));
    }
}

void Comparison::judge(const Form& form, const Simulated& simulated, const Hashes& expected) {
    const auto found = std::ranges::find(groups_, form.group, &Group::name);
    Group& group = found == groups_.end() ? groups_.emplace_back(Group{form.group}) : *found;
    for (const auto& finding : simulated.findings) faults_.push_back(fmt::format("{}: {}", form.name, finding));
    if (!simulated.refusal.empty()) {
        ++group.refused;
        judge_refusal(form, simulated.refusal);
        return;
    }
    ++group.equal;
    const Hashes actual = hash(form, simulated.results);
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
        if (actual.at(quarter) == expected.at(quarter)) continue;
        faults_.push_back(fmt::format(
            "{}: results of quarter {} of the tuples are not those of the GPU (see tuples.h for what it holds)",
            form.name, quarter + 1));
    }
    for (const auto& refusal : known_refusals()) {
        if (matches(form.name, refusal.pattern)) {
            faults_.push_back(fmt::format("{}: it runs, but '{}' is said to be refused", form.name, refusal.pattern));
        }
    }
}

void Comparison::judge_refusal(const Form& form, const std::string& message) {
    const auto known = known_refusals();
    const auto found =
        std::ranges::find_if(known, [&](const Refusal& refusal) { return matches(form.name, refusal.pattern); });
    if (found == known.end()) {
        faults_.push_back(fmt::format("{}: refused, and no known reason: {}", form.name, message));
    } else {
        ++refusals_[static_cast<std::size_t>(found - known.begin())];
    }
}

std::string Comparison::group_table() const {
    std::string table =
        "| forms | measured on the H200 | equal in the simulator | refused by it |\n| --- | --- | --- | --- |\n";
    Group all{"all"};
    const auto add = [&](const Group& group) {
        table +=
            fmt::format("| {} | {} | {} | {} |\n", group.name, group.equal + group.refused, group.equal, group.refused);
    };
    for (const auto& group : groups_) {
        add(group);
        all.equal += group.equal;
        all.refused += group.refused;
    }
    add(all);
    return table;
}

std::string Comparison::refusal_table() const {
    std::string table = "| refused | forms | why |\n| --- | --- | --- |\n";
    for (std::size_t i = 0; i < refusals_.size(); ++i) {
        const auto& [pattern, reason] = known_refusals()[i];
        table += fmt::format("| `{}` | {} | {} |\n", pattern, refusals_[i], reason);
    }
    return table;
}

}  // namespace block_attention::conformance
