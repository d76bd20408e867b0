#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/isa/types.h"
#include "verify/simulator/machine/warp.h"

/// Executors as loops over the 32 lanes of a warp. They compute every lane, also those that don't take part, and store
/// the active ones: a loop without conditions is what compilers turn into vector instructions. So an operation must be
/// defined for any operand bits.
namespace block_attention::simulator {

/// How a register holds a value of type T.
template <typename T>
using Cell = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

template <typename T>
T from_cell(Cell<T> cell) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(cell);
    } else if constexpr (sizeof(T) == 2) {
        return std::bit_cast<T>(static_cast<std::uint16_t>(cell));
    } else {
        return std::bit_cast<T>(cell);
    }
}

template <typename T>
Cell<T> to_cell(T value) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<Cell<T>>(static_cast<std::make_unsigned_t<T>>(value));
    } else if constexpr (sizeof(T) == 2) {
        return std::bit_cast<std::uint16_t>(value);
    } else {
        return std::bit_cast<Cell<T>>(value);
    }
}

template <typename T>
using Lanes = std::array<Cell<T>, kWarpSize>;

/// The lanes of a register don't depend on each other, even where source and destination are the same one.
#if defined(__clang__)
#define BLOCK_ATTENTION_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define BLOCK_ATTENTION_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

template <typename Operation, typename D, typename... S>
void compute_lanes(Cell<D>* result, const Cell<S>*... sources) {
    BLOCK_ATTENTION_INDEPENDENT_LANES
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        result[lane] = to_cell<D>(Operation::apply(from_cell<S>(sources[lane])...));
    }
}

/// slots[0] = Operation::apply(slots[1], slots[2], ...), lane by lane.
template <typename Operation, typename D, typename... S>
Outcome execute_lanes(Warp& warp, const Decoded& instruction) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        warp.require(instruction, instruction.slots[I + 1]...);
        if (warp.active() == kAllLanes) {
            compute_lanes<Operation, D, S...>(warp.lanes_of<Cell<D>>(instruction.slots[0]),
                                              warp.lanes_of<Cell<S>>(instruction.slots[I + 1])...);
            warp.written(instruction.slots[0]) = kAllLanes;
        } else {
            alignas(64) Lanes<D> result;
            compute_lanes<Operation, D, S...>(result.data(), warp.lanes_of<Cell<S>>(instruction.slots[I + 1])...);
            warp.commit(instruction.slots[0], result);
        }
    }
    (std::index_sequence_for<S...>{});
    return Outcome::next;
}

/// A C++ type and the instruction types whose values it holds.
template <typename T, Type... types>
struct Values {};

template <typename T, std::size_t>
using Repeat = T;

template <typename Operation, typename T, std::size_t... I>
constexpr Execute execute_on(std::index_sequence<I...>) {
    return &execute_lanes<Operation, T, Repeat<T, I>...>;
}

/// The executor of Operation for the wanted type, out of the entries' types, with all operands of that type; null if no
/// entry has it: choose<Add, 2, Values<float, Type::f32>>(type).
template <typename Operation, std::size_t sources, typename... Entries>
Execute choose(Type type) {
    Execute found = nullptr;
    const auto consider = [&]<typename T, Type... types>(Values<T, types...>) {
        const std::array served{types...};
        if (std::find(served.begin(), served.end(), type) != served.end())
            found = execute_on<Operation, T>(std::make_index_sequence<sources>{});
    };
    (consider(Entries{}), ...);
    return found;
}

}  // namespace block_attention::simulator
