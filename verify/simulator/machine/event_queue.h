#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace block_attention::simulator {

/// What asynchronous operations still have to do, ordered by simulated time; what was posted first goes first among
/// equals.
class EventQueue {
  public:
    using Action = std::function<void()>;

    void post(std::uint64_t time, Action action) {
        heap_.push_back({time, count_++, std::move(action)});
        std::ranges::push_heap(heap_, later);
    }
    [[nodiscard]] bool empty() const { return heap_.empty(); }
    /// Time of the next event; the queue must not be empty.
    [[nodiscard]] std::uint64_t next_time() const { return heap_.front().time; }
    /// Takes the next event out and runs it. It may post others.
    void run_next() {
        std::ranges::pop_heap(heap_, later);
        const Action action = std::move(heap_.back().action);
        heap_.pop_back();
        action();
    }
    void clear() {
        heap_.clear();
        count_ = 0;
    }

  private:
    struct Event {
        std::uint64_t time = 0;
        std::uint64_t order = 0;
        Action action;
    };
    static bool later(const Event& a, const Event& b) {
        return std::pair(a.time, a.order) > std::pair(b.time, b.order);
    }

    std::vector<Event> heap_;
    std::uint64_t count_ = 0;
};

}  // namespace block_attention::simulator
