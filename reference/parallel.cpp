#include "reference/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace block_attention {

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
    const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto work = [&] {
        for (std::int64_t i = next++; i < count; i = next++) {
            try {
                body(i);
            } catch (...) {
                const std::scoped_lock lock(failure_mutex);
                if (!failure) failure = std::current_exception();
                next = count;
            }
        }
    };
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < std::min(cores, count); ++i) helpers.emplace_back(work);
    work();
    helpers.clear();  // joins
    if (failure) std::rethrow_exception(failure);
}

}  // namespace block_attention
