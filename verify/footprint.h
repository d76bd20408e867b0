#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/problem.h"

namespace block_attention {

/// A range of a view's elements by their distance from its first, in memory order.
struct ElementRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// Which elements of an operand's span belong to a row of a tile. The rest are gaps that no kernel may write and none
/// needs to read: padding, other tensors' places, rows outside every tile.
class Footprint {
  public:
    Footprint(const Problem& problem, Operand operand);

    /// Elements from the view's first to just behind its last.
    [[nodiscard]] std::int64_t span() const { return span_; }
    /// Places in memory that hold an element of a tile; fewer than elements where strides are 0.
    [[nodiscard]] std::int64_t places() const { return places_; }
    [[nodiscard]] bool contains(std::int64_t place) const;

    /// Calls `visit` for the gaps, or for the runs between them, in memory order, each as long as it can be.
    void for_each_gap(const std::function<void(ElementRange)>& visit) const { for_each(false, visit); }
    void for_each_run(const std::function<void(ElementRange)>& visit) const { for_each(true, visit); }

  private:
    void for_each(bool inside, const std::function<void(ElementRange)>& visit) const;

    std::int64_t span_ = 0;
    std::int64_t places_ = 0;
    std::vector<bool> inside_;  ///< by place; empty if the span has no gap
};

/// "sequence 0, head 1, token 5, dim 3": the first element of an operand that lies at a place of its footprint.
std::string element_at(const Problem& problem, Operand operand, std::int64_t place);

}  // namespace block_attention
