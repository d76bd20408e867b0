#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/tensor.h"

namespace block_attention {

/// Which way a problem goes. Forward: O from Q, K, V. Backward: dQ, dK, dV from Q, K, V, dO, with no saved statistics.
enum class Pass : std::uint8_t { forward, backward };

/// Every tensor a problem can name.
enum class Operand : std::uint8_t { q, k, v, o, d_o, d_q, d_k, d_v, rotary };
inline constexpr int kOperands = 9;

/// "q", "k", "v", "o", "dO", "dQ", "dK", "dV" or "rotary".
std::string_view name_of(Operand operand);

//! [problem]
/// Block-diagonal attention: O = softmax(scale * Q K^T) V inside each tile of `block_size` tokens, nothing across
/// tiles.
///
/// Sequences are cut into tiles from their own first token; the last tile of a sequence may be shorter, and a sequence
/// may be empty. A row that belongs to no tile is never written. See reference/tiles.h for the tiles themselves.
struct Problem {
    Pass pass = Pass::forward;
    DType dtype = DType::fp16;          ///< of Q, K, V, O and their gradients
    std::int64_t sequences = 0;         ///< batch size; 0 is an empty problem
    std::int64_t heads = 0;             ///< per sequence, the same for Q, K and V
    std::int64_t head_dim = 0;          ///< elements of a row
    std::int64_t block_size = 0;        ///< tokens of a full tile
    std::int64_t tokens = 0;            ///< uniform: per sequence; jagged: of the whole batch
    std::vector<std::int64_t> offsets;  ///< jagged: sequences + 1 first tokens, ascending; empty: uniform
    float scale = 0;                    ///< exact, as a kernel receives it; see default_scale

    TensorView q, k, v, o;
    TensorView d_o, d_q, d_k, d_v;  ///< backward only

    /// Rotary embedding: row t is [sin(dim/2) | cos(dim/2)] for token t, applied to interleaved pairs of Q, K and V.
    std::optional<TensorView> rotary;

    [[nodiscard]] bool jagged() const { return !offsets.empty(); }
    /// The operand's view. Throws std::out_of_range for a rotary table that the problem doesn't have.
    [[nodiscard]] const TensorView& view(Operand operand) const;
    [[nodiscard]] TensorView& view(Operand operand);
    /// The operand's size along each Axis. Jagged sequences share one token axis: 1 sequence of `tokens` tokens.
    [[nodiscard]] std::array<std::int64_t, kAxes> extents(Operand operand) const;
    /// What the pass reads, and what it writes.
    [[nodiscard]] std::vector<Operand> inputs() const;
    [[nodiscard]] std::vector<Operand> outputs() const;
};
//! [problem]

/// 1 / sqrt(head_dim), rounded to float: the scale of a problem that doesn't name one.
float default_scale(std::int64_t head_dim);

/// The number of bytes from a view's first element to the end of its last, or nothing if it does not fit in an int64.
/// 0 for an operand with no elements.
std::optional<std::int64_t> byte_span(const Problem& problem, Operand operand);

/// Checks everything a stage may rely on. Returns nothing for a sound problem, else one sentence that names the first
/// fault, the value, the limit and the way out.
std::optional<std::string> validate(const Problem& problem);

}  // namespace block_attention
