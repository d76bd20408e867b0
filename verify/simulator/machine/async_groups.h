#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace block_attention::simulator {

/// Asynchronous operations of one thread that are waited for together: how many still have to read their sources, and
/// how many have yet to complete.
struct AsyncGroup {
    std::uint32_t reads = 0;
    std::uint32_t operations = 0;
    std::vector<std::function<void()>> when_complete;  ///< run once, when no operation is left

    void start() {
        ++reads;
        ++operations;
    }
    void finish_read() { --reads; }
    void finish() {
        if (--operations != 0) return;
        for (const auto& action : std::exchange(when_complete, {})) action();
    }
};

/// The groups of one thread: cp.async's or cp.async.bulk's (PTX ISA 9.7.9.25.3 and 9.7.9.27.2).
class AsyncGroups {
  public:
    /// The group that the next operation joins.
    std::shared_ptr<AsyncGroup>& open() {
        if (!open_) open_ = std::make_shared<AsyncGroup>();
        return open_;
    }
    void commit() {
        committed_.push_back(std::exchange(open_, nullptr));
        if (!committed_.back()) committed_.back() = std::make_shared<AsyncGroup>();
        while (!committed_.empty() && committed_.front()->operations == 0) committed_.pop_front();
    }
    /// Whether all but the newest `pending` committed groups are complete, or have read their sources.
    [[nodiscard]] bool done(std::size_t pending, bool reads_only) const {
        if (committed_.size() <= pending) return true;
        return std::all_of(committed_.begin(), committed_.end() - static_cast<std::ptrdiff_t>(pending),
                           [&](const auto& group) { return (reads_only ? group->reads : group->operations) == 0; });
    }
    /// Whether every operation is complete, of the open group as well.
    [[nodiscard]] bool all_done() const { return done(0, false) && (!open_ || open_->operations == 0); }
    /// Every group with operations left.
    [[nodiscard]] std::vector<std::shared_ptr<AsyncGroup>> unfinished() const {
        std::vector<std::shared_ptr<AsyncGroup>> groups;
        for (const auto& group : committed_) {
            if (group->operations != 0) groups.push_back(group);
        }
        if (open_ && open_->operations != 0) groups.push_back(open_);
        return groups;
    }

  private:
    std::shared_ptr<AsyncGroup> open_;
    std::deque<std::shared_ptr<AsyncGroup>> committed_;
};

}  // namespace block_attention::simulator
