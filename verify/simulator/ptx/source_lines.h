#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "verify/simulator/ptx/module.h"

namespace block_attention::simulator::ptx {

/// A place in a CUDA source.
struct SourcePlace {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    bool operator==(const SourcePlace&) const = default;
};

/// Collects the .loc directives of a module. A directive names one call site at most; the call sites further out are
/// found through the .loc that came for that call site before, in the same function.
class SourceLines {
  public:
    explicit SourceLines(std::vector<SourceLine>& entries) : entries_(entries) {}

    /// Forgets what earlier functions said.
    void enter_function() { latest_.clear(); }
    /// The index of the entry for a place, inlined at a call site or not; equal ones share an entry.
    std::int32_t add(SourcePlace place, std::optional<SourcePlace> call_site);

  private:
    struct Hash {
        std::size_t operator()(const SourcePlace& place) const;
    };

    [[nodiscard]] std::int32_t resolve(SourcePlace place, SourcePlace call_site);
    std::int32_t append(SourcePlace place, std::int32_t inlined_at);

    std::vector<SourceLine>& entries_;
    std::unordered_map<SourcePlace, std::int32_t, Hash> latest_;
};

}  // namespace block_attention::simulator::ptx
