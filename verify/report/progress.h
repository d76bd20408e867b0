#pragma once
#include <chrono>
#include <cstdint>
#include <ostream>
#include <string_view>

namespace block_attention {

/// A bar on a terminal that is drawn once work has become long, and leaves no trace.
class Progress {
  public:
    /// `enabled`: whether the stream is a terminal; else nothing is ever written.
    Progress(std::ostream& stream, bool enabled, std::int64_t steps)
        : stream_(stream), enabled_(enabled), steps_(steps), start_(std::chrono::steady_clock::now()) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    /// Begins a step. A step known to take long is shown at once.
    void begin(std::string_view what, bool takes_long);
    /// Ends a step.
    void end() { ++done_; }
    /// Removes the bar, before anything else is written to the terminal.
    void clear();

  private:
    std::ostream& stream_;
    bool enabled_;
    std::int64_t steps_;
    std::int64_t done_ = 0;
    bool shown_ = false;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace block_attention
