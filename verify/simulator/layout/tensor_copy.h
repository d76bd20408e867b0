#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "verify/simulator/layout/swizzle.h"
#include "verify/simulator/layout/tensor_map.h"

/// The walk of cp.async.bulk.tensor (.tile, 1-D to 5-D) over one box: which global bytes go to which shared ones.
/// Sources: PTX ISA 5.5.2-5.5.7 and 9.7.9.27.1. All of it was measured on H200 without a deviation, element strides
/// included, except the 128B swizzles with larger atoms, which sm_90 lacks. Every function expects a map that
/// validate() accepts and that unsupported() has nothing against.
namespace block_attention::simulator {

/// Start of the box in elements, dimension 0 first; entries from the rank on are not used.
using TensorCoordinates = std::array<std::int32_t, kMaxTensorRank>;

enum class TensorCopyDirection : std::uint8_t {
    load,   ///< global to shared memory
    store,  ///< shared to global memory, reductions included
};

/// The box of a map, as it lies in shared memory: rows of dimension 0, one after the other, dimension 1 fastest.
struct TensorBox {
    explicit TensorBox(const TensorMap& map);

    /// Bytes that a load completes on its mbarrier: all of the box, elements outside the tensor included, gaps between
    /// rows not. With element strides, the elements taken count, not the extent walked over.
    [[nodiscard]] std::uint32_t transaction_bytes() const { return rows * row_bytes; }
    /// Extent in shared memory, from the copy's shared address on.
    [[nodiscard]] std::uint32_t shared_bytes() const { return rows * row_pitch; }

    std::array<std::uint32_t, kMaxTensorRank> count{1, 1, 1, 1, 1};  ///< elements taken along each dimension
    std::uint32_t row_bytes = 0;
    std::uint32_t row_pitch = 0;  ///< the swizzle's span, even where the row is narrower; without a swizzle the row
    std::uint32_t rows = 1;
};

/// The trap that a copy runs into, or nothing:
/// - the shared address must be a multiple of 128 (cudaErrorMisalignedAddress);
/// - coordinate 0 times the element size must be a multiple of 16 bytes, even out of bounds, and
/// - no coordinate of a store may be negative (both cudaErrorIllegalInstruction).
std::string check_tensor_copy(const TensorMap& map, const TensorCoordinates& coordinates, std::uint32_t shared_address,
                              TensorCopyDirection direction);

/// The 16 bits that a load repeats over everything outside the tensor: 0, or 0x7FF7 with NaN fill, for elements of 2, 4
/// and 8 bytes alike (measured on H200).
inline std::uint16_t fill_pattern(const TensorMap& map) { return map.fill == TensorMapFill::nan ? 0x7FF7 : 0; }

/// What a load does to the bytes it read: maps of type tfloat32 and tfloat32_ftz round each float to the nearest of 10
/// mantissa bits, ties to even, and make every NaN 0x7FFFE000; neither flushes subnormals, and float32_ftz changes
/// nothing (measured on H200, 524288 bit patterns a type). Stores convert nothing. Fill is not converted.
void convert_loaded(TensorMapType type, std::span<std::byte> bytes);

/// Neighbouring bytes of a copy.
struct TensorRun {
    std::uint64_t global = 0;  ///< address, where `inside`
    std::uint32_t shared = 0;  ///< address, swizzle applied
    std::uint32_t bytes = 0;   ///< at most a row; under a swizzle at most a chunk that stays whole
    bool inside = false;       ///< of the tensor: otherwise a load writes fill_pattern and a store skips the bytes
};

/// The part of for_each_run that all rows of a box share.
class TensorRowWalk {
  public:
    TensorRowWalk(const TensorMap& map, const TensorCoordinates& coordinates, TensorCopyDirection direction,
                  const TensorBox& box);

    /// `global`: address of the row's first element. `shared`: the same before the swizzle. `inside`: whether the row's
    /// other coordinates are inside the tensor.
    template <typename Visit>
    void walk(std::uint64_t global, std::uint32_t shared, bool inside, Visit&& visit) const {
        if (!inside) return walk(global, shared, 0, row_bytes_, false, visit);
        walk(global, shared, 0, begin_, false, visit);
        walk(global, shared, begin_, end_, true, visit);
        walk(global, shared, end_, row_bytes_, false, visit);
    }

  private:
    template <typename Visit>
    void walk(std::uint64_t global, std::uint32_t shared, std::uint32_t from, std::uint32_t to, bool inside,
              Visit&& visit) const {
        while (from < to) {
            const std::uint32_t next = std::min(to, from - from % chunk_bytes_ + chunk_bytes_);
            visit(TensorRun{global + from, swizzled(swizzle_, shared + from), next - from, inside});
            from = next;
        }
    }

    SwizzleMode swizzle_;
    std::uint32_t row_bytes_;
    std::uint32_t chunk_bytes_;  // the whole row without a swizzle
    std::uint32_t begin_ = 0;    // the bytes of a row that dimension 0 has inside the tensor: [begin_, end_)
    std::uint32_t end_ = 0;
};

/// Calls visit(TensorRun) for every byte of the box once, in the order of the box.
///
/// A store clips dimension 0 at the tensor's row rounded up to 16 bytes: if dims[0] elements are no multiple of 16
/// bytes, up to 15 bytes of the box are written behind the row (measured on H200; triton issue 11583). Other
/// dimensions, and loads in every dimension, are exact.
template <typename Visit>
void for_each_run(const TensorMap& map, const TensorCoordinates& coordinates, std::uint32_t shared_address,
                  TensorCopyDirection direction, Visit&& visit) {
    const TensorBox box(map);
    const TensorRowWalk row_walk(map, coordinates, direction, box);
    const std::uint64_t row_start = map.address + static_cast<std::uint64_t>(coordinates[0]) * element_bytes(map);
    std::array<std::uint32_t, kMaxTensorRank> step{};  // along dimensions 1 and up
    for (std::uint32_t row = 0; row < box.rows; ++row) {
        std::uint64_t global = row_start;
        bool inside = true;
        for (std::uint32_t i = 1; i < map.rank; ++i) {
            const std::int64_t x = std::int64_t{coordinates[i]} + std::int64_t{step[i]} * map.element_strides[i];
            inside = inside && static_cast<std::uint64_t>(x) < map.dims[i];  // below 0 is far above
            global += static_cast<std::uint64_t>(x) * map.byte_strides[i - 1];
        }
        row_walk.walk(global, shared_address + row * box.row_pitch, inside, visit);
        for (std::uint32_t i = 1; i < map.rank && ++step[i] == box.count[i]; ++i) step[i] = 0;
    }
}

}  // namespace block_attention::simulator
