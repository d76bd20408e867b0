#include "verify/suggest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace block_attention {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);  // distances of a's prefix to every prefix of b
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
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
