#include "verify/simulator/engines/tensor_core.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "verify/simulator/engines/tensor_core_vector.h"
#include "verify/simulator/isa/half.h"
#include "verify/simulator/isa/special_values.h"

namespace block_attention::simulator {

namespace {

/// The least relative exponent of a step's largest product for which it does no harm that elements under kLeastKept
/// have lost their value: their products would be truncated to zero.
constexpr int kLeastRelative = kLeastKept - 1 + 27;

/// What is known of the largest products of a row and a block of columns in a step: the relative exponents or codes.
template <unsigned terms>
[[gnu::always_inline]] inline Shorts largest_exponents(const RowStep& row, const ColumnsStep& columns) {
    const auto sum = [&](unsigned k) {
        const auto both = std::bit_cast<Shorts>(Words{} + row.exponents[k]);
        return both + load<Shorts>(columns.exponents[k].data());
    };
    Shorts largest = sum(0);
    for (unsigned k = 1; k < terms; ++k) largest = larger(largest, sum(k));
    return largest;
}

/// Whether products are so small that the plain version has to decide.
template <typename Exponent>
[[gnu::always_inline]] inline auto is_unsure(Exponent largest) {
    return (largest < kLeastRelative) & (largest > kZeroProduct);
}

/// The sum over k of trunc(a[k] * b[k] * scale), lane by lane.
template <unsigned terms>
[[gnu::always_inline]] inline Integers sum_truncated_products(const RowStep& row, const ColumnsStep& columns,
                                                              unsigned lane, Floats scale) {
    Words sum{};
    for (unsigned k = 0; k < terms; ++k) {
        const Floats product = row.values[k] * load<Floats>(&columns.values[k][lane]);
        sum += words_of(__builtin_convertvector(product * scale, Integers));
    }
    return integers_of(sum);
}

/// An integer from 0 as a float, truncated. With `keep_odd`, the last bit is set if bits were cut off, so that rounding
/// the float to fewer bits gives the same as rounding the integer.
template <bool keep_odd>
[[gnu::always_inline]] inline Floats truncate_to_float(Integers value) {
    constexpr float kLargest = 0x7FFFFF80;
    const Floats nearest = smaller(__builtin_convertvector(value, Floats), Floats{} + kLargest);
    const Integers back = __builtin_convertvector(nearest, Integers);
    const Integers too_large = back > value;
    const Integers truncated = integers_of(nearest) + too_large;
    if constexpr (!keep_odd) return floats_of(truncated);
    return floats_of(truncated | ((back != value) & 1));
}

/// A float from 0 to the nearest value of an f16: adding a number whose last bit is worth as much as the f16's last bit
/// makes the addition round there.
[[gnu::always_inline]] inline Floats round_to_f16(Floats value) {
    const Integers exponent = larger(exponent_field(words_of(value)) - 127, all(-14));
    const Floats magic = power_of_two(exponent + 13);
    const Floats rounded = (value + magic) - magic;
    const Floats infinity = floats_of(all(0x7F800000));
    return rounded < 65536.0F ? rounded : infinity;
}

struct StepResult {
    Words bits;
    Integers unsure;  ///< Not zero where the plain version has to decide.
};

/// A step for kLanes outputs. C and D are f32 bit patterns, also if they hold values of an f16.
///
/// E is not known to a row of A or a column of B alone, so that the truncation of the products to multiples of
/// 2^(E - 25) takes a multiplication and a conversion to integers for every product. These integers are less than
/// 2^27 and sixteen of them fit into 32 bits with a sign; C, less than 2^26, may rarely be too much.
///
/// `relative` and `base` add up to the exponent of the largest product.
template <AccumulatorType accumulator, unsigned terms>
[[gnu::always_inline]] inline StepResult step(const RowStep& row, const ColumnsStep& columns, unsigned lane,
                                              Integers relative, Words c) {
    constexpr bool kIsF16 = accumulator == AccumulatorType::f16;
    const Integers base = load<Integers>(&columns.largest[lane]) + row.largest;

    // A zero's exponent is too small to be E or to leave anything of a significand, even beside zero products. So is
    // a subnormal's hidden bit, unless E is so small that the plain version decides.
    const Integers no_exponent = all(-100000);
    const Integers c_is_zero = (c << 1) == 0;
    const Integers c_exponent = c_is_zero ? no_exponent : exponent_field(c) - 127;
    Integers e = larger(relative + base, c_exponent);
    if constexpr (kIsF16) e = larger(larger(e, c_is_zero ? no_exponent : all(-14)), all(-14 - 7));

    // Without a product the scale doesn't matter, but has to be finite.
    const Integers scale = smaller(larger(base - e + 25, all(-126)), all(25 - kLeastRelative));
    const Integers products = sum_truncated_products<terms>(row, columns, lane, power_of_two(scale));

    const Words c_significand = (c & 0x7FFFFF) | 0x800000;
    const Words c_truncated = c_significand << 2 >> words_of(smaller(e - c_exponent, all(31)));
    const Words c_sign = words_of(integers_of(c) >> 31);
    const Words addend = (c_truncated ^ c_sign) - c_sign;
    const auto sum = integers_of(words_of(products) + addend);
    const Integers negative = sum >> 31;
    const auto magnitude = integers_of(words_of(sum ^ negative) - words_of(negative));
    // The least integer has no magnitude.
    const Integers overflow = (((products ^ sum) & (integers_of(addend) ^ sum)) | magnitude) >> 31;

    // The result is subnormal only if E is small. Infinities and NaN make E large.
    const Integers unit = larger(e - 25, all(-126));
    Floats result = truncate_to_float<kIsF16>(magnitude) * power_of_two(unit);
    if constexpr (kIsF16) result = round_to_f16(result);
    const Integers sign = (kIsF16 ? negative & (result > 0.0F) : negative) & static_cast<std::int32_t>(0x80000000);
    const Integers beyond = ((e < -126 + 25) & (e > kZeroProduct)) | (e > 127);
    return {.bits = words_of(result) | words_of(sign), .unsure = beyond | overflow};
}

/// Whether any bit is set.
[[gnu::always_inline]] inline bool any(Integers mask) {
    const auto parts = std::bit_cast<std::array<std::uint64_t, sizeof(mask) / sizeof(std::uint64_t)>>(mask);
    std::uint64_t bits = 0;
    for (const std::uint64_t part : parts) bits |= part;
    return bits != 0;
}

/// Between the words of C and D and f32 bit patterns.
template <AccumulatorType accumulator>
std::uint32_t from_word(std::uint32_t word) {
    if constexpr (accumulator == AccumulatorType::f32) return word;
    return std::bit_cast<std::uint32_t>(to_float(Half{static_cast<std::uint16_t>(word)}));
}

template <AccumulatorType accumulator>
std::uint32_t to_word(std::uint32_t bits) {
    if constexpr (accumulator == AccumulatorType::f32) return bits;
    return to_half(std::bit_cast<float>(bits)).bits;
}

/// Whether an element of a step is NaN.
bool contains_nan(OperandType type, std::span<const std::uint32_t> words) {
    const std::uint32_t magnitude = type == OperandType::tf32 ? 0x7FFFE000 : 0x7FFF;
    const std::uint32_t infinity = type == OperandType::f16 ? 0x7C00 : type == OperandType::bf16 ? 0x7F80 : 0x7F800000;
    std::uint32_t largest = 0;
    for (const std::uint32_t word : words) largest = std::max(largest, word & magnitude);
    return largest > infinity;
}

/// One output by the plain version. C and D are f32 bit patterns.
template <AccumulatorType accumulator>
std::uint32_t plain_step(OperandType type, std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                         std::uint32_t c) {
    // Data that a kernel should have waited for are NaN, often all of them, and need not take long.
    const bool c_is_nan = (c & 0x7FFFFFFF) > 0x7F800000;
    if (c_is_nan || contains_nan(type, a) || contains_nan(type, b)) return kNan32;
    return from_word<accumulator>(tensor_core_step(type, accumulator, a, b, to_word<accumulator>(c)));
}

/// A block of columns of one row in one step: C in `tile` becomes D.
template <AccumulatorType accumulator, unsigned terms, unsigned vectors>
void step_block(const PackedRows& a, const PackedColumns& b, unsigned row, unsigned block, unsigned step_index,
                std::uint32_t* tile) {
    const RowStep& factors = a.row(row, step_index);
    const ColumnsStep& columns = b.columns(block, step_index);
    const Shorts largest = largest_exponents<terms>(factors, columns);
    const auto pairs = integers_of(largest);
    const std::array<Integers, 2> relative = {pairs << 16 >> 16, pairs >> 16};
    std::array<Words, vectors> c;
    std::array<Integers, vectors> unsure;
    Integers any_unsure = integers_of(is_unsure(largest));
    for (unsigned i = 0; i < vectors; ++i) {
        c[i] = load<Words>(tile + i * kLanes);
        const StepResult result = step<accumulator, terms>(factors, columns, i * kLanes, relative[i], c[i]);
        store(tile + i * kLanes, result.bits);
        unsure[i] = result.unsure;
        any_unsure |= result.unsure;
    }
    if (!any(any_unsure)) [[likely]]
        return;
    const unsigned first = block * kBlockColumns;
    for (unsigned i = 0; i < std::min(vectors * kLanes, b.count() - first); ++i) {
        if (unsure[i / kLanes][i % kLanes] == 0 && !is_unsure(relative[i / kLanes][i % kLanes])) continue;
        tile[i] = plain_step<accumulator>(a.type(), a.words(row, step_index), b.words(first + i, step_index),
                                          c[i / kLanes][i % kLanes]);
    }
}

template <AccumulatorType accumulator>
void load_row(const Accumulation& accumulation, std::span<const std::uint32_t> words, std::uint32_t* tile) {
    if (!accumulation.add_c) {
        std::fill_n(tile, words.size(), 0);
        return;
    }
    for (std::size_t n = 0; n < words.size(); ++n) tile[n] = from_word<accumulator>(words[n]);
    if (accumulation.scale_exponent == 0) return;
    for (std::size_t n = 0; n < words.size(); ++n) {
        const std::uint32_t c = to_word<accumulator>(tile[n]);
        tile[n] = from_word<accumulator>(scale_accumulator(accumulator, c, accumulation.scale_exponent).bits);
    }
}

template <AccumulatorType accumulator, unsigned terms>
void multiply_rows(const PackedRows& a, const PackedColumns& b, const Accumulation& accumulation,
                   std::span<std::uint32_t* const> rows) {
    // B of one step and C of a few rows stay in the first-level cache.
    constexpr unsigned kRowsAtOnce = 16;
    const std::size_t pitch = std::size_t{b.blocks()} * kBlockColumns;
    // The last block may need half its columns only.
    const unsigned whole_blocks = (b.count() + kBlockColumns - kLanes - 1) / kBlockColumns;
    std::vector<std::uint32_t> tile(kRowsAtOnce * pitch);
    for (unsigned first = 0; first < a.count(); first += kRowsAtOnce) {
        const unsigned last = std::min(first + kRowsAtOnce, a.count());
        const auto for_each_row = [&](auto visit) {
            for (unsigned m = first; m < last; ++m) {
                if (rows[m] != nullptr) visit(m, tile.data() + (m - first) * pitch);
            }
        };
        for_each_row([&](unsigned m, std::uint32_t* c) {
            load_row<accumulator>(accumulation, {rows[m], b.count()}, c);
        });
        for (unsigned step = 0; step < a.steps(); ++step) {
            for_each_row([&](unsigned m, std::uint32_t* c) {
                for (unsigned block = 0; block < whole_blocks; ++block) {
                    step_block<accumulator, terms, 2>(a, b, m, block, step, c + block * kBlockColumns);
                }
                if (whole_blocks < b.blocks()) {
                    step_block<accumulator, terms, 1>(a, b, m, whole_blocks, step, c + whole_blocks * kBlockColumns);
                }
            });
        }
        for_each_row([&](unsigned m, const std::uint32_t* d) {
            for (unsigned n = 0; n < b.count(); ++n) rows[m][n] = to_word<accumulator>(d[n]);
        });
    }
}

std::string_view name(OperandType type) {
    switch (type) {
        case OperandType::f16:
            return "f16";
        case OperandType::bf16:
            return "bf16";
        case OperandType::tf32:
            break;
    }
    return "tf32";
}

void check(const PackedRows& a, const PackedColumns& b, AccumulatorType accumulator, std::size_t rows) {
    if (a.type() != b.type()) {
        throw std::invalid_argument(
            fmt::format("A is {}, B is {}: both factors must have one type", name(a.type()), name(b.type())));
    }
    if (a.depth() != b.depth()) {
        throw std::invalid_argument(
            fmt::format("A has a depth of {}, B one of {}: they must be equal", a.depth(), b.depth()));
    }
    if (rows != a.count()) {
        throw std::invalid_argument(fmt::format("A has {} rows, D has {}: they must be equal", a.count(), rows));
    }
    if (accumulator == AccumulatorType::f16 && a.type() != OperandType::f16) {
        throw std::invalid_argument(
            fmt::format("A and B are {}: an f16 accumulator needs f16, or use an f32 accumulator", name(a.type())));
    }
}

}  // namespace

void multiply(const PackedRows& a, const PackedColumns& b, const Accumulation& accumulation,
              std::span<std::uint32_t* const> rows) {
    check(a, b, accumulation.type, rows.size());
    // What lies beyond the last term of a step are zeros.
    const bool is_half = a.terms() <= kStepTerms / 2;
    if (accumulation.type == AccumulatorType::f16) {
        const auto multiply_f16 = is_half ? &multiply_rows<AccumulatorType::f16, kStepTerms / 2>
                                          : &multiply_rows<AccumulatorType::f16, kStepTerms>;
        multiply_f16(a, b, accumulation, rows);
    } else {
        const auto multiply_f32 = is_half ? &multiply_rows<AccumulatorType::f32, kStepTerms / 2>
                                          : &multiply_rows<AccumulatorType::f32, kStepTerms>;
        multiply_f32(a, b, accumulation, rows);
    }
}

}  // namespace block_attention::simulator
