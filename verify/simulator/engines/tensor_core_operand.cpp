#include "verify/simulator/engines/tensor_core_operand.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "verify/simulator/engines/tensor_core_vector.h"

namespace block_attention::simulator {

namespace {

/// The elements of an operand as words, a step's after the other's, each filled up with zeros. `contiguous`: along k
/// they are side by side, which as a constant makes the loop vector instructions.
template <typename Element, bool contiguous>
void read_elements(const OperandView& view, std::uint32_t* to) {
    constexpr unsigned kElements = 32 / sizeof(Element);
    const Element sign = view.negate ? Element{1} << (8 * sizeof(Element) - 1) : 0;
    const std::ptrdiff_t pitch = contiguous ? std::ptrdiff_t{sizeof(Element)} : view.depth_stride;
    const auto read = [&](const std::byte* from, unsigned count) {
        for (unsigned k = 0; k < count; ++k) {
            Element element{};
            std::memcpy(&element, from + k * pitch, sizeof(element));
            to[k] = static_cast<Element>(element ^ sign);
        }
    };
    for (unsigned i = 0; i < view.count; ++i) {
        const std::byte* from = view.data + i * view.stride;
        for (unsigned k = 0; k < view.depth; k += kElements, from += kElements * pitch, to += kStepTerms) {
            const unsigned present = std::min(kElements, view.depth - k);
            if (present == kElements) [[likely]] {
                read(from, kElements);
            } else {
                read(from, present);
            }
            std::fill(to + present, to + kStepTerms, 0);
        }
    }
}

template <typename Element>
void read_elements(const OperandView& view, std::uint32_t* to) {
    if (view.depth_stride == sizeof(Element)) {
        read_elements<Element, true>(view, to);
    } else {
        read_elements<Element, false>(view, to);
    }
}

constexpr std::int32_t kNoExponent = -1000;

/// The elements' values. What is infinite or NaN is one of the two, no matter which.
template <OperandType type>
[[gnu::always_inline]] inline Floats to_floats(Words words) {
    if constexpr (type == OperandType::bf16) return floats_of(words << 16);
    if constexpr (type == OperandType::tf32) return floats_of(words & 0xFFFFE000);
    // Read as an f32 the value of an f16 is 2^-112 times too small, also when it is subnormal.
    const Words magnitude = words << 13 & 0x0FFFE000;
    const Words scaled = words_of(floats_of(magnitude) * 0x1p112F);
    const Words special = Words{} + 0x7F800000;
    return floats_of((magnitude < 0x0F800000 ? scaled : special) | (words << 16 & 0x80000000));
}

/// The exponents of terms, kNoExponent for zeros and specials.
template <OperandType type>
[[gnu::always_inline]] inline Integers term_exponents(Floats values) {
    constexpr std::int32_t kLeast = type == OperandType::f16 ? -14 : -126;
    const Integers magnitude = integers_of(words_of(values) & 0x7FFFFFFF);
    const Integers exponents = larger((magnitude >> 23) - 127, all(kLeast));
    return ((magnitude == 0) | (magnitude >= 0x7F800000)) ? all(kNoExponent) : exponents;
}

struct RelativeTerms {
    Floats values;
    Integers exponents;
};

[[gnu::always_inline]] inline RelativeTerms relative_terms(Floats values, Integers exponents, Integers largest) {
    const Integers relative = exponents - largest;
    const Integers code = (words_of(values) << 1) == 0 ? all(kZeroCode) : all(kSpecialCode);
    // In two factors, for 2^-127 is not normal.
    const Floats scaled = values * power_of_two(1 - largest) * 0.5F;
    return {.values = relative < kLeastKept ? Floats{} : scaled,
            .exponents = exponents == kNoExponent ? code : relative};
}

/// Of a row or column without terms the exponents are relative to 0.
[[gnu::always_inline]] inline Integers or_zero(Integers largest) { return largest == kNoExponent ? all(0) : largest; }

/// Everywhere the largest of the lanes.
[[gnu::always_inline]] inline Integers largest_lane(Integers x) {
    x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    return larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
}

template <OperandType type>
void pack_row(const std::uint32_t* words, RowStep& row) {
    const Floats lower = to_floats<type>(load<Words>(words));
    const Floats upper = to_floats<type>(load<Words>(words + kLanes));
    const Integers lower_exponents = term_exponents<type>(lower);
    const Integers upper_exponents = term_exponents<type>(upper);
    const Integers largest = or_zero(largest_lane(larger(lower_exponents, upper_exponents)));
    const auto store_terms = [&](unsigned k, Floats values, Integers exponents) {
        const RelativeTerms terms = relative_terms(values, exponents, largest);
        store(&row.values[k], terms.values);
        store(&row.exponents[k], (words_of(terms.exponents) & 0xFFFF) | words_of(terms.exponents) << 16);
    };
    store_terms(0, lower, lower_exponents);
    store_terms(kLanes, upper, upper_exponents);
    row.largest = largest[0];
}

using TransposedWords = std::array<std::array<std::uint32_t, kBlockColumns>, kStepTerms>;

template <OperandType type>
void pack_columns(const TransposedWords& words, ColumnsStep& columns) {
    std::array<Integers, kStepTerms> earlier{};
    for (unsigned n = 0; n < kBlockColumns; n += kLanes) {
        std::array<Floats, kStepTerms> values;
        std::array<Integers, kStepTerms> exponents;
        Integers largest = all(kNoExponent);
        for (unsigned k = 0; k < kStepTerms; ++k) {
            values[k] = to_floats<type>(load<Words>(&words[k][n]));
            exponents[k] = term_exponents<type>(values[k]);
            largest = larger(largest, exponents[k]);
        }
        largest = or_zero(largest);
        store(&columns.largest[n], largest);
        for (unsigned k = 0; k < kStepTerms; ++k) {
            const RelativeTerms terms = relative_terms(values[k], exponents[k], largest);
            store(&columns.values[k][n], terms.values);
            store(columns.exponents[k].data(), (words_of(earlier[k]) & 0xFFFF) | words_of(terms.exponents) << 16);
            earlier[k] = terms.exponents;
        }
    }
}

/// Calls the function with the type as a constant.
template <typename Function>
void with_type(OperandType type, Function function) {
    switch (type) {
        case OperandType::f16:
            return function.template operator()<OperandType::f16>();
        case OperandType::bf16:
            return function.template operator()<OperandType::bf16>();
        case OperandType::tf32:
            return function.template operator()<OperandType::tf32>();
    }
}

}  // namespace

void PackedOperand::read(const OperandView& view) {
    type_ = view.type;
    count_ = view.count;
    depth_ = view.depth;
    const unsigned elements = step_depth(type_);
    steps_ = (depth_ + elements - 1) / elements;
    words_.resize(std::size_t{count_} * steps_ * kStepTerms);
    if (type_ == OperandType::tf32) {
        read_elements<std::uint32_t>(view, words_.data());
    } else {
        read_elements<std::uint16_t>(view, words_.data());
    }
}

void PackedRows::pack(const OperandView& view) {
    read(view);
    rows_.resize(std::size_t{count()} * steps());
    with_type(type(), [&]<OperandType type>() {
        for (unsigned i = 0; i < count(); ++i) {
            for (unsigned step = 0; step < steps(); ++step) {
                pack_row<type>(words(i, step).data(), rows_[std::size_t{i} * steps() + step]);
            }
        }
    });
}

void PackedColumns::pack(const OperandView& view) {
    read(view);
    columns_.resize(std::size_t{steps()} * blocks());
    with_type(type(), [&]<OperandType type>() {
        for (unsigned block = 0; block < blocks(); ++block) {
            const unsigned first = block * kBlockColumns;
            const unsigned present = std::min(kBlockColumns, count() - first);
            TransposedWords transposed;
            if (present < kBlockColumns) transposed = {};
            for (unsigned step = 0; step < steps(); ++step) {
                for (unsigned n = 0; n < present; ++n) {
                    const std::uint32_t* column = words(first + n, step).data();
                    for (unsigned k = 0; k < kStepTerms; ++k) transposed[k][n] = column[k];
                }
                pack_columns<type>(transposed, columns_[std::size_t{step} * blocks() + block]);
            }
        }
    });
}

}  // namespace block_attention::simulator
