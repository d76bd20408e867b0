#include "verify/selection.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>

#include "verify/cases/builtin.h"
#include "verify/cases/case_spec.h"
#include "verify/suggest.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

bool matches(const std::string& pattern, std::string_view name) {
    return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

[[noreturn]] void refuse(std::string_view kind, const std::string& word, const std::vector<std::string>& names) {
    throw UsageError(fmt::format("there is no {} {}{}", kind, word, suggestion(word, names)));
}

}  // namespace

std::vector<Case> select_cases(const std::vector<std::string>& words, std::uint64_t seed) {
    const std::vector<Case>& builtin = builtin_cases();
    if (words.empty()) return builtin;
    std::vector<Case> selected;
    for (const std::string& word : words) {
        if (word.find('=') != std::string::npos) {
            selected.push_back(parse_case(word, seed));
            continue;
        }
        const std::size_t before = selected.size();
        std::copy_if(builtin.begin(), builtin.end(), std::back_inserter(selected),
                     [&](const Case& test_case) { return matches(word, test_case.name); });
        if (selected.size() > before) continue;
        std::vector<std::string> names(builtin.size());
        std::transform(builtin.begin(), builtin.end(), names.begin(),
                       [](const Case& test_case) { return test_case.name; });
        refuse("case", word, names);
    }
    return selected;
}

std::vector<const Stage*> select_stages(const std::vector<std::string>& words, std::span<const Stage* const> stages) {
    std::vector<std::string> names;
    for (const Stage* stage : stages) names.emplace_back(stage->name);
    for (const std::string& word : words) {
        const auto named = [&](const std::string& name) { return matches(word, name); };
        if (std::none_of(names.begin(), names.end(), named)) refuse("stage", word, names);
    }
    std::vector<const Stage*> selected;
    std::copy_if(stages.begin(), stages.end(), std::back_inserter(selected), [&](const Stage* stage) {
        const auto names_it = [&](const std::string& word) { return matches(word, stage->name); };
        return words.empty() || std::any_of(words.begin(), words.end(), names_it);
    });
    return selected;
}

}  // namespace block_attention
