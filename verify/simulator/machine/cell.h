#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

/// Simulated memory, one naturally aligned cell at a time. CTAs run on several host threads over the same global
/// memory, so that a kernel's data race must not be one of the simulator: every access is a relaxed atomic one, which
/// costs nothing on common hosts.
namespace block_attention::simulator {

template <typename T>
T load_cell(std::byte* cell) {
    return std::atomic_ref<T>(*reinterpret_cast<T*>(cell)).load(std::memory_order_relaxed);
}

template <typename T>
void store_cell(std::byte* cell, T value) {
    std::atomic_ref<T>(*reinterpret_cast<T*>(cell)).store(value, std::memory_order_relaxed);
}

/// The shadow of a cell, every byte of which has been written: one byte of 1 for each byte of memory.
template <typename T>
inline constexpr T kWritten = static_cast<T>(0x0101010101010101);

}  // namespace block_attention::simulator
