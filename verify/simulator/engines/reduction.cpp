#include "verify/simulator/engines/reduction.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

namespace {

template <typename T>
T combine_integers(ReductionOperation operation, T old, T value) {
    using U = std::make_unsigned_t<T>;
    switch (operation) {
        case ReductionOperation::add:
            return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
        case ReductionOperation::min:
            return std::min(old, value);
        case ReductionOperation::max:
            return std::max(old, value);
        case ReductionOperation::inc:
            return old >= value ? T{0} : static_cast<T>(old + 1);
        case ReductionOperation::dec:
            return old == 0 || old > value ? value : static_cast<T>(old - 1);
        case ReductionOperation::bit_and:
            return old & value;
        case ReductionOperation::bit_or:
            return old | value;
        case ReductionOperation::bit_xor:
            return old ^ value;
    }
    return old;
}

/// A sum, or of min and max the operand that is a number.
template <typename T>
T combine_numbers(ReductionOperation operation, T old, T value) {
    if (operation == ReductionOperation::add) return old + value;
    if (old != old) return value;
    if (value != value) return old;
    return (operation == ReductionOperation::min) == (value < old) ? value : old;
}

/// A sum flushes subnormal numbers, as atom.add.f32 in global memory does.
float combine_floats(ReductionOperation operation, float old, float value) {
    const float result = flush(combine_numbers(operation, flush(old), flush(value)));
    return result != result ? std::bit_cast<float>(kNan32) : result;
}

template <typename Bits, typename Combine>
void reduce_each(std::byte* destination, std::span<const std::byte> elements, const Combine& combine) {
    for (std::size_t at = 0; at + sizeof(Bits) <= elements.size(); at += sizeof(Bits)) {
        Bits value = 0;
        std::memcpy(&value, elements.data() + at, sizeof value);
        const std::atomic_ref<Bits> cell(*reinterpret_cast<Bits*>(destination + at));
        Bits old = cell.load();
        while (!cell.compare_exchange_weak(old, combine(old, value))) {
        }
    }
}

template <typename T>
void reduce_integers(ReductionOperation operation, std::byte* destination, std::span<const std::byte> elements) {
    using Bits = std::make_unsigned_t<T>;
    reduce_each<Bits>(destination, elements, [&](Bits old, Bits value) {
        return static_cast<Bits>(combine_integers(operation, static_cast<T>(old), static_cast<T>(value)));
    });
}

template <typename T>
void reduce_sixteen_bits(ReductionOperation operation, std::byte* destination, std::span<const std::byte> elements) {
    reduce_each<std::uint16_t>(destination, elements, [&](std::uint16_t old, std::uint16_t value) {
        return round_to<T>(combine_numbers(operation, to_float(T{old}), to_float(T{value}))).bits;
    });
}

}  // namespace

bool is_reducible(const Reduction& reduction) {
    using enum ReductionOperation;
    const bool bitwise =
        reduction.operation == bit_and || reduction.operation == bit_or || reduction.operation == bit_xor;
    const bool counting = reduction.operation == inc || reduction.operation == dec;
    switch (reduction.type) {
        case TensorMapType::uint32:
            return true;
        case TensorMapType::int32:
        case TensorMapType::uint64:
        case TensorMapType::int64:
            return !counting;
        case TensorMapType::float16:
        case TensorMapType::bfloat16:
            return !counting && !bitwise;
        case TensorMapType::float32:
        case TensorMapType::float32_ftz:
        case TensorMapType::float64:
            return reduction.operation == add;
        default:
            return false;
    }
}

void reduce(const Reduction& reduction, std::byte* destination, std::span<const std::byte> elements) {
    const ReductionOperation operation = reduction.operation;
    switch (reduction.type) {
        case TensorMapType::uint32:
            return reduce_integers<std::uint32_t>(operation, destination, elements);
        case TensorMapType::int32:
            return reduce_integers<std::int32_t>(operation, destination, elements);
        case TensorMapType::uint64:
            return reduce_integers<std::uint64_t>(operation, destination, elements);
        case TensorMapType::int64:
            return reduce_integers<std::int64_t>(operation, destination, elements);
        case TensorMapType::float16:
            return reduce_sixteen_bits<Half>(operation, destination, elements);
        case TensorMapType::bfloat16:
            return reduce_sixteen_bits<BFloat16>(operation, destination, elements);
        case TensorMapType::float32:
        case TensorMapType::float32_ftz:
            return reduce_each<std::uint32_t>(destination, elements, [&](std::uint32_t old, std::uint32_t value) {
                return std::bit_cast<std::uint32_t>(
                    combine_floats(operation, std::bit_cast<float>(old), std::bit_cast<float>(value)));
            });
        case TensorMapType::float64:
            return reduce_each<std::uint64_t>(destination, elements, [&](std::uint64_t old, std::uint64_t value) {
                return std::bit_cast<std::uint64_t>(
                    combine_numbers(operation, std::bit_cast<double>(old), std::bit_cast<double>(value)));
            });
        default:
            return;
    }
}

}  // namespace block_attention::simulator
