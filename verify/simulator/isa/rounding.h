#pragma once
#include <cfenv>
#include <cstdint>

namespace block_attention::simulator {

/// How a result is rounded: .rn (ties to even), .rz, .rm (towards minus infinity), .rp.
enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// Evaluates an operation in another rounding mode than to nearest. The volatile copies keep the compiler from moving
/// the arithmetic out of the region where the mode is set.
template <typename Operation, Rounding rounding>
struct Directed {
    template <typename... T>
    static auto apply(T... operands) {
        constexpr int kMode = rounding == Rounding::zero   ? FE_TOWARDZERO
                              : rounding == Rounding::down ? FE_DOWNWARD
                                                           : FE_UPWARD;
        std::fesetround(kMode);
        const volatile auto result = evaluate(static_cast<volatile T&>(operands)...);
        std::fesetround(FE_TONEAREST);
        return static_cast<decltype(Operation::apply(operands...))>(result);
    }

  private:
    template <typename... T>
    static auto evaluate(volatile T&... operands) {
        return Operation::apply(static_cast<T>(operands)...);
    }
};

}  // namespace block_attention::simulator
