#pragma once
#include <cfenv>
#include <cstdint>

namespace block_attention::simulator {

/// How a result is rounded: .rn (ties to even), .rz, .rm (towards minus infinity), .rp.
enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// Evaluates an operation in another rounding mode than to nearest. What else is known of the operation stays.
template <typename Operation, Rounding rounding>
struct Directed : Operation {
    template <typename... T>
    static auto apply(T... operands) {
        return evaluate([](T... values) { return Operation::apply(values...); }, operands...);
    }
    template <typename... T>
    static auto scaled(T... operands) requires requires {
        Operation::scaled(operands...);
    }
    {
        return evaluate([](T... values) { return Operation::scaled(values...); }, operands...);
    }

  private:
    /// The volatile copies keep the compiler from moving the arithmetic out of the region where the mode is set.
    template <typename Function, typename... T>
    static auto evaluate(Function function, T... operands) {
        constexpr int kMode = rounding == Rounding::zero   ? FE_TOWARDZERO
                              : rounding == Rounding::down ? FE_DOWNWARD
                                                           : FE_UPWARD;
        std::fesetround(kMode);
        const volatile auto result = call(function, static_cast<volatile T&>(operands)...);
        std::fesetround(FE_TONEAREST);
        return static_cast<decltype(function(operands...))>(result);
    }
    template <typename Function, typename... T>
    static auto call(Function function, volatile T&... operands) {
        return function(static_cast<T>(operands)...);
    }
};

}  // namespace block_attention::simulator
