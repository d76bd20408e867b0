#include "verify/suggest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace block_attention {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    // Distances of prefixes of a to every prefix of b: the last three rows.
    std::vector<std::size_t> row(b.size() + 1);
    std::vector<std::size_t> above;
    std::vector<std::size_t> two_above;
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        two_above = std::exchange(above, row);
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
            row[j + 1] = std::min({replaced, row[j] + 1, above[j + 1] + 1});
            const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            if (swapped) row[j + 1] = std::min(row[j + 1], two_above[j - 1] + 1);
        }
    }
    return row.back();
}

std::string suggestion(std::string_view unknown, std::span<const std::string> names) {
    const std::size_t near = std::max<std::size_t>(1, unknown.size() / 3);
    std::vector<std::string> similar;
    for (const std::string& name : names) {
        if (edit_distance(unknown, name) <= near) similar.push_back(name);
    }
    if (similar.empty()) return fmt::format("; there are {}", fmt::join(names, ", "));
    return fmt::format("; did you mean {}?", fmt::join(similar, " or "));
}

}  // namespace block_attention
