#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "reference/problem.h"

namespace block_attention {

/// Machine code for one architecture. `architecture` is what ptxas calls it: 90 for sm_90, with `specific` for sm_90a.
struct Cubin {
    int architecture = 0;
    bool specific = false;  ///< the "a" targets: runs on that architecture alone
    std::span<const std::byte> image;
};

/// One .cu file, compiled: PTX for the simulator and as the driver's fallback, and cubins for known GPUs.
struct KernelModule {
    std::string_view name;    ///< "naive"
    std::string_view source;  ///< path below the repository root: "naive/naive.cu"
    std::string_view ptx;
    std::span<const Cubin> cubins;
};

struct Dim3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;

    [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
    bool operator==(const Dim3&) const = default;
};

/// Pointer to an operand's first element, plus an offset.
struct BufferArgument {
    Operand operand;
    std::int64_t byte_offset = 0;
};

/// Pointer to one of the plan's tables.
struct TableArgument {
    std::size_t table;
};

/// A scalar or a trivially copyable struct, by value.
struct ValueArgument {
    std::vector<std::byte> bytes;
    std::size_t alignment = 1;
};

template <typename T>
ValueArgument value_argument(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    ValueArgument argument{std::vector<std::byte>(sizeof(T)), alignof(T)};
    std::memcpy(argument.bytes.data(), &value, sizeof(T));
    return argument;
}

/// Shared-memory swizzle of a tensor map (CUtensorMapSwizzle).
enum class Swizzle : std::uint8_t { none, b32, b64, b128 };

/// A TMA tensor map by its fields, dimension 0 the contiguous one (cuTensorMapEncodeTiled). The holder of a device
/// turns it into that device's 128 opaque bytes.
struct TensorMapArgument {
    Operand operand;
    std::int64_t byte_offset = 0;
    DType dtype = DType::fp16;
    std::vector<std::uint64_t> dims{};          ///< elements; 1 to 5 entries
    std::vector<std::uint64_t> byte_strides{};  ///< of dimensions 1 and up: one entry fewer than dims
    std::vector<std::uint32_t> box{};           ///< elements a copy moves, as many entries as dims
    Swizzle swizzle = Swizzle::none;
};

using Argument = std::variant<BufferArgument, TableArgument, ValueArgument, TensorMapArgument>;

/// One kernel launch, as data.
struct Launch {
    const KernelModule* module = nullptr;
    std::string kernel;
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;  ///< in CTAs; 1, 1, 1 without clusters
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<Argument> arguments;  ///< in the kernel's parameter order
};

/// Read-only data that a kernel needs beside the operands, such as the tile list. Whoever launches uploads it.
struct Table {
    std::string name;
    std::vector<std::byte> bytes;
};

template <typename T>
Table make_table(std::string name, const std::vector<T>& rows) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = std::as_bytes(std::span(rows));
    return {std::move(name), {bytes.begin(), bytes.end()}};
}

/// All that a stage wants done for one problem, in order. Empty for a problem without a tile.
struct Plan {
    std::vector<Table> tables;
    std::vector<Launch> launches;
};

/// Why a stage does not serve a problem: one sentence with the value and the limit.
struct Refusal {
    std::string reason;
};

using PlanResult = std::variant<Plan, Refusal>;

/// The plan in words, one line a launch and a table, for documentation and messages.
std::string to_string(const Plan& plan);

}  // namespace block_attention
