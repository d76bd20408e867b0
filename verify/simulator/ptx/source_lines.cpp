#include "verify/simulator/ptx/source_lines.h"

namespace block_attention::simulator::ptx {

std::int32_t SourceLines::add(SourcePlace place, std::optional<SourcePlace> call_site) {
    const std::int32_t inlined_at = call_site ? resolve(place, *call_site) : -1;
    const auto latest = latest_.find(place);
    if (latest != latest_.end() && entries_[latest->second].inlined_at == inlined_at) return latest->second;
    return latest_[place] = append(place, inlined_at);
}

/// The entry of a call site. In inlined recursion the chain of the call site can hold the place itself; which turn of
/// the recursion is meant cannot be told then, so the chain ends at the call site.
std::int32_t SourceLines::resolve(SourcePlace place, SourcePlace call_site) {
    const auto latest = latest_.find(call_site);
    if (latest == latest_.end()) return latest_[call_site] = append(call_site, -1);
    for (std::int32_t entry = latest->second; entry >= 0; entry = entries_[entry].inlined_at) {
        const SourceLine& line = entries_[entry];
        if (SourcePlace{line.file, line.line, line.column} == place) return append(call_site, -1);
    }
    return latest->second;
}

std::int32_t SourceLines::append(SourcePlace place, std::int32_t inlined_at) {
    entries_.push_back({place.file, place.line, place.column, inlined_at});
    return static_cast<std::int32_t>(entries_.size() - 1);
}

std::size_t SourceLines::Hash::operator()(const SourcePlace& place) const {
    constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio, odd
    std::uint64_t hash = place.file;
    hash = (hash ^ place.line) * kMultiplier;
    hash = (hash ^ place.column) * kMultiplier;
    return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

}  // namespace block_attention::simulator::ptx
