#include "verify/cases/fill.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "reference/parallel.h"
#include "reference/tiles.h"
#include "verify/cases/random.h"

namespace block_attention {
namespace {

constexpr std::array kFills{
    FillFacts{Fill::normal, "normal", "normal numbers"},
    FillFacts{Fill::attention, "attention",
              "normal numbers, q four times as large: weights as sharp as a trained model's"},
    FillFacts{Fill::integers, "integers", "integers of -3 to 3: every product is exact"},
    FillFacts{Fill::equal_rows, "equal-rows", "all rows of a tensor equal: every weight is 1/length"},
    FillFacts{Fill::extreme_logits, "extreme-logits", "logits near +10^4 and -10^4"},
    FillFacts{Fill::huge_keys, "huge-keys", "one key in 64 is 256 times as large as the others"},
    FillFacts{Fill::subnormal, "subnormal", "q and v below the smallest normal number"},
    FillFacts{Fill::large_values, "large-values", "v near the largest finite number (fp32 and bf16: over 2 * block)"},
    FillFacts{Fill::zeros, "zeros", "+0 and -0"},
    FillFacts{Fill::non_finite, "non-finite", "infinity in k and NaN in v of the middle tile of one head, else normal"},
};

/// Where a row of a tensor lies and which random numbers are its own.
struct Row {
    std::int64_t sequence = 0;
    std::int64_t head = 0;
    std::int64_t token = 0;
    std::uint64_t number = 0;         ///< of the row in the tensor
    std::uint64_t first_element = 0;  ///< its first element's number
};

/// The values of one operand under one fill, before they are rounded to the type.
class Values {
  public:
    Values(const Problem& problem, Operand operand, Fill fill, std::uint64_t seed)
        : operand_(operand),
          fill_(fill),
          elements_(seed, 2 * static_cast<std::uint64_t>(operand)),
          rows_(seed, 2 * static_cast<std::uint64_t>(operand) + 1),
          jagged_(problem.jagged()) {
        const Format format = format_of(problem.dtype);
        const float longest = static_cast<float>(std::max<std::int64_t>(1, problem.block_size));
        largest_ =
            static_cast<float>(std::ldexp(2.0 - std::ldexp(1.0, 1 - format.significand_bits), format.max_exponent));
        // An unnormalized sum of P V must stay finite in fp32 arithmetic, which it always does for fp16.
        if (problem.dtype != DType::fp16) largest_ /= 2 * longest;
        smallest_ = std::ldexp(1.0F, format.min_exponent - (format.significand_bits - 1));
        subnormals_ = (std::uint64_t{1} << static_cast<unsigned>(format.significand_bits - 1)) - 1;
        const float scaled_dim = std::abs(problem.scale) * static_cast<float>(problem.head_dim);
        extreme_ = scaled_dim > 0 ? std::sqrt(1e4F / scaled_dim) : 1.0F;
        if (fill == Fill::non_finite) {
            const std::vector<Tile> tiles = list_tiles(problem);
            if (!tiles.empty()) poisoned_ = tiles[tiles.size() / 2];
            poisoned_head_ = problem.heads / 2;
        }
    }

    void fill(const Row& row, std::span<float> values) const {
        for (std::size_t d = 0; d < values.size(); ++d) values[d] = value(row, d);
        const bool poisoned = poisoned_ && row.head == poisoned_head_ && row.token >= poisoned_->first_row &&
                              row.token < poisoned_->first_row + poisoned_->length &&
                              (jagged_ || row.sequence == poisoned_->sequence);
        if (!poisoned) return;
        if (operand_ == Operand::k) values.front() = std::numeric_limits<float>::infinity();
        if (operand_ == Operand::v) values.back() = std::numeric_limits<float>::quiet_NaN();
    }

  private:
    [[nodiscard]] float value(const Row& row, std::size_t d) const {
        const std::uint64_t index = row.first_element + d;
        const bool is_query = operand_ == Operand::q;
        const bool is_key = operand_ == Operand::k;
        const bool is_value = operand_ == Operand::v;
        switch (fill_) {
            case Fill::normal:
            case Fill::non_finite:
                break;
            case Fill::attention:
                return (is_query ? 4.0F : 1.0F) * elements_.normal(index);
            case Fill::integers:
                return static_cast<float>(elements_.bits(index) % 7) - 3.0F;
            case Fill::equal_rows:
                return elements_.normal(d);
            case Fill::extreme_logits: {
                if (!is_query && !is_key) break;
                const bool negative = is_key && rows_.bits(row.number) % 2 == 1;
                return (negative ? -extreme_ : extreme_) * (1.0F + elements_.normal(index) / 16);
            }
            case Fill::huge_keys:
                return (is_key && rows_.bits(row.number) % 64 == 0 ? 256.0F : 1.0F) * elements_.normal(index);
            case Fill::subnormal: {
                if (!is_query && !is_value) break;
                const std::uint64_t bits = elements_.bits(index);
                const float magnitude = static_cast<float>(1 + (bits >> 1) % subnormals_) * smallest_;
                return bits % 2 == 1 ? -magnitude : magnitude;
            }
            case Fill::large_values: {
                if (!is_value) break;
                const float share = 1.0F - static_cast<float>(elements_.bits(index) % 1024) / 2048;
                return (rows_.bits(d) % 2 == 1 ? -share : share) * largest_;
            }
            case Fill::zeros:
                return elements_.bits(index) % 2 == 1 ? -0.0F : 0.0F;
        }
        return elements_.normal(index);
    }

    Operand operand_;
    Fill fill_;
    CounterRandom elements_;
    CounterRandom rows_;
    bool jagged_;  ///< a row's sequence is then always 0: its token alone tells where it is
    float largest_ = 0;
    float smallest_ = 0;
    std::uint64_t subnormals_ = 1;
    float extreme_ = 1;
    std::optional<Tile> poisoned_;
    std::int64_t poisoned_head_ = 0;
};

template <typename T>
void store_row(const TensorView& view, const Row& row, std::span<const float> values) {
    for (std::size_t d = 0; d < values.size(); ++d) {
        const T element(values[d]);
        std::memcpy(view.at(row.sequence, row.head, row.token, static_cast<std::int64_t>(d)), &element, sizeof(T));
    }
}

void store_row(const TensorView& view, const Row& row, std::span<const float> values) {
    switch (view.dtype) {
        case DType::fp16:
            return store_row<Eigen::half>(view, row, values);
        case DType::bf16:
            return store_row<Eigen::bfloat16>(view, row, values);
        case DType::fp32:
            return store_row<float>(view, row, values);
    }
}

}  // namespace

std::span<const FillFacts> fills() { return kFills; }

std::string_view name_of(Fill fill) { return kFills[static_cast<std::size_t>(fill)].name; }

std::optional<Fill> parse_fill(std::string_view name) {
    const auto found =
        std::find_if(kFills.begin(), kFills.end(), [&](const auto& facts) { return facts.name == name; });
    return found == kFills.end() ? std::nullopt : std::optional(found->fill);
}

void fill_input(const Problem& problem, Operand operand, Fill fill, std::uint64_t seed) {
    const TensorView& view = problem.view(operand);
    const std::array<std::int64_t, kAxes> extents = problem.extents(operand);
    const std::int64_t sequences = extents[0];
    const std::int64_t heads = extents[1];
    const std::int64_t tokens = extents[2];
    const std::int64_t dim = extents[3];
    const std::int64_t rows = problem.jagged() ? problem.offsets.back() : tokens;  // in a tile
    const std::int64_t distinct_sequences =
        view.strides.sequence == 0 ? std::min<std::int64_t>(sequences, 1) : sequences;
    const std::int64_t distinct_heads = view.strides.head == 0 ? std::min<std::int64_t>(heads, 1) : heads;
    const Values values(problem, operand, fill, seed);

    constexpr std::int64_t kRowsPerTask = 256;
    const std::int64_t chunks = tiles_in(rows, kRowsPerTask);
    parallel_for(distinct_sequences * distinct_heads * chunks, [&](std::int64_t task) {
        std::vector<float> row_values(static_cast<std::size_t>(dim));
        const std::int64_t begin = task % chunks * kRowsPerTask;
        Row row{.sequence = task / chunks / distinct_heads, .head = task / chunks % distinct_heads};
        for (row.token = begin; row.token < std::min(rows, begin + kRowsPerTask); ++row.token) {
            row.number = static_cast<std::uint64_t>((row.sequence * heads + row.head) * tokens + row.token);
            row.first_element = row.number * static_cast<std::uint64_t>(dim);
            values.fill(row, row_values);
            store_row(view, row, row_values);
        }
    });
}

}  // namespace block_attention
