#include "verify/simulator/layout/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kMaxRegisters = 128;
constexpr std::uint32_t kColumnsOfA = 8;  // 16 elements of 16 bits
constexpr std::uint32_t kSafeAlignmentOfD = 32;

/// Empty, or what is wrong with columns first..last of an operand.
std::string check_columns(std::string_view operand, std::int64_t first, std::int64_t last) {
    if (first >= 0 && last < std::int64_t{kTensorMemoryColumns}) return {};
    return fmt::format("{} takes columns {}..{} of Tensor Memory: it has {}", operand, first, last,
                       kTensorMemoryColumns);
}

}  // namespace

Verdict check_accumulator(TensorMemoryAddress d, std::uint32_t m, std::uint32_t n) {
    if (d.lane != 0 && !(m == 64 && d.lane == 16)) {
        return {fmt::format("the accumulator starts in lane {}: with M = {} it must be {}", d.lane, m,
                            m == 64 ? "0 or 16" : "0"),
                {}};
    }
    Verdict verdict{check_columns("the accumulator", d.column, std::int64_t{d.column} + n - 1), {}};
    if (verdict.ok() && d.column % kSafeAlignmentOfD != 0) {
        verdict.warning = fmt::format(
            "the accumulator starts in column {}: no source says that this works; use a multiple "
            "of {}",
            d.column, kSafeAlignmentOfD);
    }
    return verdict;
}

Verdict check_a_in_tensor_memory(TensorMemoryAddress a, TensorMemoryAddress d) {
    if (a.lane != d.lane) {
        return {
            fmt::format("A starts in lane {} of Tensor Memory and D in lane {}: they must be equal", a.lane, d.lane),
            {}};
    }
    Verdict verdict{check_columns("A", a.column, std::int64_t{a.column} + kColumnsOfA - 1), {}};
    if (verdict.ok() && a.column % kColumnsOfA != 0) {
        verdict.warning = fmt::format(
            "A starts in column {} of Tensor Memory: no source says that this works; use a "
            "multiple of {}",
            a.column, kColumnsOfA);
    }
    return verdict;
}

std::string_view name_of(RegisterShape shape) {
    switch (shape) {
        case RegisterShape::s32x32b:
            return "32x32b";
        case RegisterShape::s16x64b:
            return "16x64b";
        case RegisterShape::s16x128b:
            return "16x128b";
        case RegisterShape::s16x256b:
            return "16x256b";
        case RegisterShape::s16x32bx2:
            return "16x32bx2";
    }
    return "unknown";
}

Verdict check_register_access(const RegisterAccess& access, TensorMemoryAddress address, std::uint32_t warp) {
    const std::string_view shape = name_of(access.shape);
    const std::uint32_t most = kMaxRegisters / registers_per_repeat(access.shape);
    if (!std::has_single_bit(access.repeat) || access.repeat > most) {
        return {fmt::format(".{} is repeated {} times: it must be a power of two of at most {}", shape, access.repeat,
                            most),
                {}};
    }
    const std::uint32_t first_lane = warp % 4 * 32;
    const bool upper_half = rows_of(access.shape) == 16 && address.lane == first_lane + 16;
    if (address.lane != first_lane && !upper_half) {
        return {fmt::format("warp {} accesses Tensor Memory with .{} from lane {}: it must start in lane {}{}", warp,
                            shape, address.lane, first_lane,
                            rows_of(access.shape) == 16 ? fmt::format(" or {}", first_lane + 16) : std::string{}),
                {}};
    }
    const std::int64_t split = access.shape == RegisterShape::s16x32bx2 ? access.split_offset : 0;
    const std::int64_t columns = columns_of(access);
    Verdict verdict{
        check_columns(fmt::format(".{}.x{}", shape, access.repeat), address.column + std::min<std::int64_t>(split, 0),
                      address.column + std::max<std::int64_t>(split, 0) + columns - 1),
        {}};
    if (verdict.ok() && access.shape == RegisterShape::s16x32bx2 && std::abs(split) < columns) {
        verdict.warning = fmt::format("the halves of .{}.x{} overlap: they are {} columns wide and {} apart", shape,
                                      access.repeat, columns, split);
    }
    return verdict;
}

std::optional<SharedCopyShape> parse_shared_copy(std::string_view shape, std::string_view multicast) {
    if (shape == "128x256b" && multicast.empty()) return SharedCopyShape::c128x256b;
    if (shape == "128x128b" && multicast.empty()) return SharedCopyShape::c128x128b;
    if (shape == "64x128b" && multicast == "warpx2::02_13") return SharedCopyShape::c64x128b_02_13;
    if (shape == "64x128b" && multicast == "warpx2::01_23") return SharedCopyShape::c64x128b_01_23;
    if (shape == "32x128b" && multicast == "warpx4") return SharedCopyShape::c32x128b_x4;
    return std::nullopt;
}

Verdict check_shared_copy(SharedCopyShape shape, TensorMemoryAddress address) {
    if (address.lane != 0) {
        return {
            fmt::format("tcgen05.cp writes all 128 lanes, but its address starts in lane {}: use lane 0", address.lane),
            {}};
    }
    const std::int64_t columns = std::int64_t{4} * source_chunks(shape);
    return {check_columns("tcgen05.cp", address.column, address.column + columns - 1), {}};
}

}  // namespace block_attention::simulator
