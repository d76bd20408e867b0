#pragma once
#include <unistd.h>

#include <cstdint>

namespace block_attention {

/// Bytes of memory that this machine has.
inline std::uint64_t memory_limit() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

inline double in_gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024 * 1024); }

}  // namespace block_attention
