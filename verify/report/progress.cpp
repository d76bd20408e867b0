#include "verify/report/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace block_attention {

void Progress::begin(std::string_view what, bool takes_long) {
    constexpr auto kLong = std::chrono::milliseconds(500);
    constexpr std::int64_t kWidth = 24;
    if (!enabled_ || (!takes_long && std::chrono::steady_clock::now() - start_ < kLong)) return;
    clear();
    const std::int64_t filled = kWidth * done_ / std::max<std::int64_t>(steps_, 1);
    constexpr std::size_t kLongestText = 40;  // with the bar less than a terminal's usual 80 columns
    stream_ << fmt::format("[{}{}] {}/{} {}", std::string(static_cast<std::size_t>(filled), '#'),
                           std::string(static_cast<std::size_t>(kWidth - filled), ' '), done_, steps_,
                           what.substr(0, kLongestText))
            << std::flush;
    shown_ = true;
}

void Progress::clear() {
    if (shown_) stream_ << "\r\033[K" << std::flush;
    shown_ = false;
}

}  // namespace block_attention
