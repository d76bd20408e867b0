#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace block_attention::simulator {

/// A request that the simulated machine cannot serve: memory it does not have, a launch beyond its limits.
struct SimulatorError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A block of memory aligned for any cell, with unspecified content.
class AlignedBytes {
  public:
    AlignedBytes() = default;
    explicit AlignedBytes(std::size_t bytes);
    [[nodiscard]] std::byte* data() const { return data_.get(); }

  private:
    struct Delete {
        void operator()(std::byte* data) const;
    };
    std::unique_ptr<std::byte, Delete> data_;
};

/// One buffer in simulated global memory.
struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::string label;
    bool freed = false;
    bool read_only = false;  ///< a .const variable
    AlignedBytes data;
    AlignedBytes shadow;  ///< a byte of 1 for every byte that was written; null once all of them were
};

/// Global memory: buffers at 64-bit addresses with unmapped gaps between them, whose bytes remember whether they were
/// ever written. Kernels read and write the bytes of an Allocation from several threads; everything else is for one
/// thread, between launches.
class GlobalMemory {
  public:
    explicit GlobalMemory(std::uint64_t capacity) : capacity_(capacity) {}

    /// A buffer aligned to 256 bytes, whose address is never used again. Throws SimulatorError beyond the capacity.
    Allocation& allocate(std::uint64_t bytes, std::string label);
    /// Throws SimulatorError unless `address` is the start of a buffer.
    void free(std::uint64_t address);
    void write(std::uint64_t address, std::span<const std::byte> from);
    void read(std::uint64_t address, std::span<std::byte> to) const;
    /// Fills bytes with a pattern and forgets that they were written.
    void poison(std::uint64_t address, std::uint64_t bytes, std::byte pattern);
    /// Drops the shadow of every buffer that is written throughout, which makes accesses to it cheaper.
    void drop_full_shadows();

    /// The last buffer that starts at or below the address, freed or not, or null.
    [[nodiscard]] const Allocation* find(std::uint64_t address) const;
    /// "12 bytes after the end of 'q' (4096 bytes at 0x1000000000)", for messages.
    [[nodiscard]] std::string describe(std::uint64_t address) const;

  private:
    [[nodiscard]] Allocation& containing(std::uint64_t address, std::uint64_t bytes, const char* purpose) const;

    std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    std::vector<std::unique_ptr<Allocation>> allocations_;  ///< by address
};

}  // namespace block_attention::simulator
