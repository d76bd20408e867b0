#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/isa/half.h"

/// What the tests of tensor-core products are made from: operands with random numbers of many kinds, and the product by
/// the plain version beside the fast one.
namespace block_attention::simulator {

inline constexpr std::uint32_t kUntouched = 0xA5A5A5A5;

/// What numbers are drawn from: f16, bf16, tf32 (as f32 with any low bits) or f32.
struct Format {
    unsigned exponent_bits = 0;
    unsigned fraction_bits = 0;

    unsigned bias() const { return (1U << (exponent_bits - 1)) - 1; }
    unsigned last_exponent() const { return (1U << exponent_bits) - 1; }
};

inline constexpr Format kF16Format{.exponent_bits = 5, .fraction_bits = 10};
inline constexpr Format kBf16Format{.exponent_bits = 8, .fraction_bits = 7};
inline constexpr Format kF32Format{.exponent_bits = 8, .fraction_bits = 23};

inline Format format_of(OperandType type) {
    if (type == OperandType::f16) return kF16Format;
    return type == OperandType::bf16 ? kBf16Format : kF32Format;
}

inline std::uint32_t from_float(Format format, float value) {
    if (format.exponent_bits == 5) return to_half(value).bits;
    return std::bit_cast<std::uint32_t>(value) >> (23 - format.fraction_bits);
}

enum class Class : std::uint8_t {
    normal,     // normal distribution
    attention,  // A: probabilities of a softmax, many of them 0
    wide,       // exponents over the whole range
    spread,     // exponents with products from 2^-60 to 1 of the largest
    subnormal,  // subnormal numbers and the least normal ones
    root,       // products about as small as the least results
    large,      // overflow
    saturated,  // largest significands, one sign: the largest sums
    zeros,      // zeros of both signs among a few numbers
    special,    // infinities and NaN among normal numbers
    bits,       // any bits
    last,
};

class Source {
  public:
    Source(Class kind, unsigned seed) : kind_(kind), random_(seed) {}

    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

    std::uint32_t element(Format format, bool is_a) {
        const unsigned sign = below(2);
        const unsigned bias = format.bias();
        switch (kind_) {
            case Class::normal:
                return from_float(format, normal_(random_));
            case Class::attention: {
                if (!is_a) return from_float(format, normal_(random_));
                const float score = 12 * normal_(random_) - 20;
                return from_float(format, below(4) == 0 ? 0 : std::exp(std::min(score, 0.0F)));
            }
            case Class::wide:
                return make(format, sign, below(format.last_exponent()));
            case Class::spread:
                return make(format, sign, bias - 14 + below(30) - (below(3) == 0 ? below(bias - 14) : 0));
            case Class::subnormal:
                return make(format, sign, below(4) / 2);
            case Class::root:
                return make(format, sign, bias / 2 - 4 + below(8));
            case Class::large:
                return make(format, sign, bias + bias / 2 - 3 + below(6));
            case Class::saturated:
                return make(format, 0, bias) | ((1U << format.fraction_bits) - 1 - below(2));
            case Class::zeros:
                return below(3) == 0 ? make(format, sign, bias + below(3)) : make_zero(format, sign);
            case Class::special: {
                if (below(40) == 0) return make_infinity(format, sign) | (below(2) == 0 ? 0 : random_bits(format));
                return below(20) == 0 ? make_zero(format, sign) : from_float(format, normal_(random_));
            }
            case Class::bits:
            case Class::last:
                break;
        }
        return make(format, sign, below(format.last_exponent() + 1));
    }

    /// A C that goes with the products: of the same class, or of their size.
    std::uint32_t accumulator(Format format) {
        if (kind_ == Class::subnormal || kind_ == Class::root) return make(format, below(2), below(3));
        if (kind_ == Class::saturated) return make(format, below(8) == 0 ? 1 : 0, format.bias() + below(3));
        if (kind_ == Class::large) return make(format, below(2), format.last_exponent() - 1 - below(3));
        return element(format, false);
    }

  private:
    std::uint32_t random_bits(Format format) { return below(1U << format.fraction_bits); }
    static std::uint32_t make_zero(Format format, unsigned sign) {
        return sign << (format.exponent_bits + format.fraction_bits);
    }
    static std::uint32_t make_infinity(Format format, unsigned sign) {
        return make_zero(format, sign) | format.last_exponent() << format.fraction_bits;
    }
    std::uint32_t make(Format format, unsigned sign, unsigned exponent) {
        return make_zero(format, sign) | exponent << format.fraction_bits | random_bits(format);
    }

    Class kind_;
    std::mt19937 random_;
    std::normal_distribution<float> normal_;
};

/// An operand in memory with its elements by number, for the reference.
class Operand {
  public:
    Operand(OperandType type, unsigned count, unsigned depth, bool depth_is_contiguous, bool negate)
        : elements_(std::size_t{count} * depth) {
        const std::ptrdiff_t size = type == OperandType::tf32 ? 4 : 2;
        view_ = {.count = count,
                 .depth = depth,
                 .stride = depth_is_contiguous ? size * depth : size,
                 .depth_stride = depth_is_contiguous ? size : size * count,
                 .type = type,
                 .negate = negate};
        bytes_.resize(elements_.size() * static_cast<std::size_t>(size));
    }

    void set(unsigned index, unsigned k, std::uint32_t element) {
        const std::ptrdiff_t at = index * view_.stride + k * view_.depth_stride;
        const auto element16 = static_cast<std::uint16_t>(element);
        const bool is_wide = view_.type == OperandType::tf32;
        std::memcpy(&bytes_[static_cast<std::size_t>(at)], is_wide ? static_cast<const void*>(&element) : &element16,
                    is_wide ? sizeof(element) : sizeof(element16));
        const std::uint32_t sign = is_wide ? 0x80000000 : 0x8000;
        elements_[std::size_t{index} * view_.depth + k] = view_.negate ? element ^ sign : element;
    }

    /// Elements `first` to `last` of row or column `index`, with the sign that counts.
    std::vector<std::uint32_t> elements(unsigned index, unsigned first, unsigned last) const {
        const auto begin = elements_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * view_.depth);
        return {begin + first, begin + last};
    }

    OperandView view() const {
        OperandView view = view_;
        view.data = bytes_.data();
        return view;
    }

  private:
    OperandView view_;
    std::vector<std::byte> bytes_;
    std::vector<std::uint32_t> elements_;
};

inline void fill(Operand& operand, Source& source, bool is_a) {
    const OperandView view = operand.view();
    for (unsigned i = 0; i < view.count; ++i) {
        for (unsigned k = 0; k < view.depth; ++k) operand.set(i, k, source.element(format_of(view.type), is_a));
    }
}

/// D by the plain version, step by step.
inline std::uint32_t expected(const Operand& a, const Operand& b, unsigned m, unsigned n,
                              const Accumulation& accumulation, std::uint32_t c) {
    const OperandType type = a.view().type;
    const unsigned step = type == OperandType::tf32 ? 8 : 16;
    if (accumulation.type == AccumulatorType::f16) c &= 0xFFFF;
    if (!accumulation.add_c) c = 0;
    if (accumulation.scale_exponent != 0) {
        c = scale_accumulator(accumulation.type, c, accumulation.scale_exponent).bits;
    }
    for (unsigned k = 0; k < a.view().depth; k += step) {
        const unsigned last = std::min(k + step, a.view().depth);
        c = tensor_core_step(type, accumulation.type, a.elements(m, k, last), b.elements(n, k, last), c);
    }
    return c;
}

/// A tile with a column more than is used, to see that nothing is written there.
class Tile {
  public:
    Tile(unsigned rows, unsigned columns) : pitch_(columns + 1), words_(std::size_t{rows} * pitch_, kUntouched) {
        for (unsigned m = 0; m < rows; ++m) rows_.push_back(&words_[std::size_t{m} * pitch_]);
    }

    std::uint32_t& at(unsigned m, unsigned n) { return words_[std::size_t{m} * pitch_ + n]; }
    std::vector<std::uint32_t*>& rows() { return rows_; }

  private:
    std::size_t pitch_;
    std::vector<std::uint32_t> words_;
    std::vector<std::uint32_t*> rows_;
};

inline unsigned differences(const Operand& a, const Operand& b, const Accumulation& accumulation, Source& source) {
    const unsigned rows = a.view().count;
    const unsigned columns = b.view().count;
    const Format format = accumulation.type == AccumulatorType::f16 ? kF16Format : kF32Format;
    Tile tile(rows, columns);
    Tile wanted(rows, columns);
    for (unsigned m = 0; m < rows; ++m) {
        for (unsigned n = 0; n < columns; ++n) {
            std::uint32_t c = source.accumulator(format);
            if (source.below(4) == 0) {
                // Cancels the first step's products, but for what they lost.
                c = expected(a, b, m, n, {.type = accumulation.type, .add_c = false}, 0);
                c ^= accumulation.type == AccumulatorType::f16 ? 0x8000U : 0x80000000U;
            }
            if (accumulation.type == AccumulatorType::f16) c |= source.below(2) << 31;
            tile.at(m, n) = c;
            wanted.at(m, n) = expected(a, b, m, n, accumulation, c);
        }
    }
    PackedRows packed_a;
    PackedColumns packed_b;
    packed_a.pack(a.view());
    packed_b.pack(b.view());
    multiply(packed_a, packed_b, accumulation, tile.rows());
    unsigned count = 0;
    for (unsigned m = 0; m < rows; ++m) {
        for (unsigned n = 0; n <= columns; ++n) count += tile.at(m, n) != wanted.at(m, n) ? 1 : 0;
    }
    return count;
}

}  // namespace block_attention::simulator
