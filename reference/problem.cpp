#include "reference/problem.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace block_attention {

std::string_view name_of(Operand operand) {
    static constexpr std::array<std::string_view, kOperands> kNames{"q",  "k",  "v",  "o",     "dO",
                                                                    "dQ", "dK", "dV", "rotary"};
    return kNames[static_cast<std::size_t>(operand)];
}

const TensorView& Problem::view(Operand operand) const {
    switch (operand) {
        case Operand::q:
            return q;
        case Operand::k:
            return k;
        case Operand::v:
            return v;
        case Operand::o:
            return o;
        case Operand::d_o:
            return d_o;
        case Operand::d_q:
            return d_q;
        case Operand::d_k:
            return d_k;
        case Operand::d_v:
            return d_v;
        case Operand::rotary:
            break;
    }
    if (!rotary) throw std::out_of_range("the problem has no rotary table");
    return *rotary;
}

TensorView& Problem::view(Operand operand) { return const_cast<TensorView&>(std::as_const(*this).view(operand)); }

std::vector<Operand> Problem::inputs() const {
    std::vector<Operand> operands{Operand::q, Operand::k, Operand::v};
    if (pass == Pass::backward) operands.push_back(Operand::d_o);
    if (rotary) operands.push_back(Operand::rotary);
    return operands;
}

std::vector<Operand> Problem::outputs() const {
    if (pass == Pass::backward) return {Operand::d_q, Operand::d_k, Operand::d_v};
    return {Operand::o};
}

std::array<std::int64_t, kAxes> Problem::extents(Operand operand) const {
    if (operand == Operand::rotary) return {1, 1, tokens, head_dim};
    return {jagged() ? 1 : sequences, heads, tokens, head_dim};
}

float default_scale(std::int64_t head_dim) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

}  // namespace block_attention
