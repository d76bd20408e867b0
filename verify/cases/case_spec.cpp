#include "verify/cases/case_spec.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "verify/cases/random.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

constexpr std::int64_t kLargestInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::array<std::string_view, 12> kKeys{"batch", "tokens", "lengths", "trailing", "heads", "dim",
                                                 "block", "dtype",  "layout",  "scale",    "fill",  "name"};

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::int64_t parse_integer(std::string_view key, std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool complete = end == text.data() + text.size() && !text.empty();
    if (!complete || error != std::errc{} || value < least || value > most) {
        throw UsageError(fmt::format("{}={} is not an integer of {} to {}", key, text, least, most));
    }
    return value;
}

float parse_scale(std::string_view text) {
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
        throw UsageError(fmt::format("scale={} is not a finite number that a float can hold", text));
    }
    return value;
}

template <typename T, typename Facts>
T parse_choice(std::string_view key, std::string_view text, const std::optional<T>& value, const Facts& all) {
    if (value) return *value;
    std::vector<std::string_view> names;
    for (const auto& facts : all) names.push_back(facts.name);
    throw UsageError(fmt::format("{}={} is unknown; there are {}", key, text, fmt::join(names, ", ")));
}

DType parse_type(std::string_view text) {
    const auto dtype = parse_dtype(text);
    if (!dtype) throw UsageError(fmt::format("dtype={} is unknown; there are fp16, bf16, fp32", text));
    return *dtype;
}

/// Appends the sequences of one term: "64", "64x3", "800..2000", "800..2000x1152".
void append_lengths(std::string_view term, std::uint64_t seed, std::vector<std::int64_t>& lengths) {
    constexpr std::string_view kKey = "lengths";
    const std::size_t times = term.find('x');
    const std::string_view range = term.substr(0, times);
    const std::int64_t count =
        times == std::string_view::npos ? 1 : parse_integer(kKey, term.substr(times + 1), 0, kLargestInt32);
    const std::size_t dots = range.find("..");
    const std::int64_t shortest = parse_integer(kKey, range.substr(0, dots), 0, kMostElements);
    const std::int64_t longest =
        dots == std::string_view::npos ? shortest : parse_integer(kKey, range.substr(dots + 2), 0, kMostElements);
    if (longest < shortest) throw UsageError(fmt::format("lengths={} descends; write the shorter length first", range));
    constexpr std::uint64_t kStream = 1000;  // apart from those of the operands
    const CounterRandom random(seed, kStream);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t draw = random.bits(lengths.size()) % static_cast<std::uint64_t>(longest - shortest + 1);
        lengths.push_back(shortest + static_cast<std::int64_t>(draw));
    }
}

std::vector<std::int64_t> parse_lengths(std::string_view text, std::uint64_t seed) {
    std::vector<std::int64_t> lengths;
    for (const std::string_view term : split(text, '+')) append_lengths(term, seed, lengths);
    return lengths;
}

void set(Case& test_case, std::string_view key, std::string_view value, std::uint64_t seed) {
    if (key == "batch") test_case.batch = parse_integer(key, value, 0, kLargestInt32);
    if (key == "tokens") test_case.tokens = parse_integer(key, value, 0, kMostElements);
    if (key == "lengths") test_case.lengths = parse_lengths(value, seed);
    if (key == "trailing") test_case.trailing = parse_integer(key, value, 0, kMostElements);
    if (key == "heads") test_case.heads = parse_integer(key, value, 0, kLargestInt32);
    if (key == "dim") test_case.dim = parse_integer(key, value, 1, kLargestInt32);
    if (key == "block") test_case.block = parse_integer(key, value, 1, kLargestInt32);
    if (key == "dtype") test_case.dtype = parse_type(value);
    if (key == "layout") test_case.layout = parse_choice(key, value, parse_layout(value), layouts());
    if (key == "scale") test_case.scale = parse_scale(value);
    if (key == "fill") test_case.fill = parse_choice(key, value, parse_fill(value), fills());
    if (key == "name") test_case.name = value;
}

void check_size(const Case& test_case) {
    long double rows = static_cast<long double>(test_case.batch) * static_cast<long double>(test_case.tokens);
    if (test_case.lengths) {
        rows = static_cast<long double>(test_case.trailing);
        for (const std::int64_t length : *test_case.lengths) rows += static_cast<long double>(length);
    }
    // A padded row of one element takes nine, the widest that a layout gets.
    const long double elements =
        rows * static_cast<long double>(test_case.heads) * static_cast<long double>(test_case.dim + 8) * 3;
    if (elements > static_cast<long double>(kMostElements)) {
        throw UsageError(fmt::format("the case {} spans {:.3g} elements a tensor; the limit is 2^48 = {:.3g}",
                                     test_case.name, static_cast<double>(elements),
                                     static_cast<double>(kMostElements)));
    }
}

void check_together(const Case& test_case, const std::set<std::string_view>& keys) {
    const auto refuse_beside_lengths = [&](std::string_view key) {
        if (test_case.lengths && keys.contains(key)) {
            throw UsageError(fmt::format("{}= and lengths= exclude each other: a case is uniform or jagged", key));
        }
    };
    refuse_beside_lengths("batch");
    refuse_beside_lengths("tokens");
    if (!test_case.lengths && test_case.trailing != 0) {
        throw UsageError(fmt::format("trailing={} needs lengths=: only a jagged batch has rows outside every sequence",
                                     test_case.trailing));
    }
    if (!test_case.lengths && test_case.layout == Layout::thd) {
        throw UsageError("layout=thd needs lengths=: it is the layout of a jagged batch (uniform: bshd)");
    }
    if (test_case.lengths && test_case.layout == Layout::shared_batch) {
        throw UsageError("layout=shared-batch excludes lengths=: jagged sequences lie one behind another");
    }
}

}  // namespace

Case parse_case(std::string_view text, std::uint64_t seed) {
    Case test_case;
    test_case.name = text;
    std::set<std::string_view> keys;
    for (const std::string_view item : split(text, ',')) {
        const std::size_t equals = item.find('=');
        const std::string_view key = item.substr(0, equals);
        if (equals == std::string_view::npos || std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
            throw UsageError(fmt::format(R"("{}" in the case "{}" is not key=value with one of the keys {})", item,
                                         text, fmt::join(kKeys, ", ")));
        }
        if (!keys.insert(key).second) throw UsageError(fmt::format("{}= is given twice in the case \"{}\"", key, text));
        set(test_case, key, item.substr(equals + 1), seed);
    }
    if (test_case.lengths && !keys.contains("layout")) test_case.layout = Layout::thd;
    check_together(test_case, keys);
    check_size(test_case);
    test_case.description = describe(make_problem(test_case));
    return test_case;
}

}  // namespace block_attention
