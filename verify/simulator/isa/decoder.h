#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/isa/program_builder.h"
#include "verify/simulator/isa/types.h"
#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator {

/// One instruction while it is decoded. A decoder function takes the modifiers that it knows, in any order, and the
/// operands with the widths that the instruction asks for, and fills in `result`; what it does not take is an error
/// that names file, line and column.
class Decoder {
  public:
    Decoder(ProgramBuilder& builder, const ptx::Instruction& instruction);

    Decoded result;

    // Modifiers.

    /// Whether the modifier is there; it is then taken.
    bool take(std::string_view modifier);
    /// Takes each of these that is there, because it changes nothing in the simulated machine.
    void ignore(std::initializer_list<std::string_view> modifiers);
    /// Takes one of a few modifiers with a meaning each, or nothing. Two of them are an error.
    template <typename T>
    std::optional<T> take_one(std::initializer_list<std::pair<std::string_view, T>> choices) {
        std::optional<T> taken;
        for (const auto& [name, value] : choices) {
            if (!take(name)) continue;
            if (taken) refuse("two modifiers that exclude each other");
            taken = value;
        }
        return taken;
    }
    /// The first type that has not been taken yet.
    std::optional<Type> take_type_if_any();
    Type take_type();
    /// Refuses modifiers that nobody took.
    void finish_modifiers() const;

    // Operands, counted from 0.

    [[nodiscard]] std::size_t operands() const { return instruction_.operands.size(); }
    [[nodiscard]] const ptx::Operand& operand(std::size_t i) const { return instruction_.operands[i]; }
    void expect_operands(std::size_t count) const { expect_operands(count, count); }
    void expect_operands(std::size_t least, std::size_t most) const;

    /// A register of the type's width, an immediate of the type, or a special register.
    Slot source(std::size_t i, Type type) { return source(operand(i), type); }
    Slot source(const ptx::Operand& operand, Type type);
    /// The same, but a register may also be wider than the type (PTX ISA 9.4.1); `bits` is then its width.
    struct WideSlot {
        Slot slot;
        unsigned bits = 32;
    };
    WideSlot wide_source(std::size_t i, Type type) { return wide_source(operand(i), type); }
    WideSlot wide_source(const ptx::Operand& operand, Type type);
    WideSlot wide_destination(const ptx::Operand& operand, Type type);
    /// A register of the type's width, or `_`.
    Slot destination(std::size_t i, Type type) { return destination(operand(i), type); }
    Slot destination(const ptx::Operand& operand, Type type);
    /// A predicate, possibly negated: all ones in `flip` for !p.
    struct PredicateSource {
        Slot slot;
        LaneMask flip = 0;
    };
    PredicateSource predicate_source(std::size_t i);
    /// An integer written in the instruction.
    std::int64_t immediate(std::size_t i) const;

    /// Fills in the memory operand `i` for the space that the modifiers name (nothing: generic addressing): slot `at`
    /// of the result, its immediate, space and wide-address flag.
    void address(std::size_t i, std::optional<ptx::Space> space, std::size_t at) { address(operand(i), space, at); }
    /// The same for an operand in brackets, the coordinates of a tensor aside.
    void address(const ptx::Operand& brackets, std::optional<ptx::Space> space, std::size_t at);
    /// The slot of a variable's address, `bytes` behind its start: of a shared one, with the CTA's rank in it.
    Slot variable_address(const ProgramBuilder::Place& place, std::int64_t bytes, unsigned bits);
    /// Takes the modifier that names a state space.
    std::optional<ptx::Space> take_space();

    [[nodiscard]] ProgramBuilder& builder() { return builder_; }
    /// "add.s32", as written.
    [[nodiscard]] std::string mnemonic() const;
    [[nodiscard]] const ptx::Instruction& instruction() const { return instruction_; }

    /// Refuses the instruction in a module for another target than that architecture's own: "sm_90" stands for sm_90a.
    void require_target(std::string_view architecture) const;

    /// Throws PtxError at the instruction: "path:line:column: mnemonic: message".
    [[noreturn]] void refuse(std::string_view message) const;
    [[noreturn]] void refuse_operand(const ptx::Operand& operand, std::string_view message) const;
    /// The executor found for a type, or an error that the instruction does not have that type.
    [[nodiscard]] Execute required(Execute execute, Type type) const;

  private:
    [[nodiscard]] std::size_t number_of(const ptx::Operand& operand) const;

    ProgramBuilder& builder_;
    const ptx::Instruction& instruction_;
    std::vector<bool> taken_;
};

/// Set in Decoded::flags where the address register has 64 bits.
inline constexpr std::uint8_t kWideAddress = 1;

/// Fills in `result` for one instruction.
using Decode = void (*)(Decoder& decoder);

/// One opcode and what decodes it.
struct Opcode {
    std::string_view name;
    Decode decode;
};

/// The opcodes of each family; see the file of that name.
std::span<const Opcode> integer_opcodes();
std::span<const Opcode> carry_opcodes();
std::span<const Opcode> dot_product_opcodes();
std::span<const Opcode> bit_opcodes();
std::span<const Opcode> mask_opcodes();
std::span<const Opcode> floating_opcodes();
std::span<const Opcode> extremum_opcodes();
std::span<const Opcode> approximate_opcodes();
std::span<const Opcode> conversion_opcodes();
std::span<const Opcode> compare_opcodes();
std::span<const Opcode> selection_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> atomic_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> barrier_opcodes();
std::span<const Opcode> cluster_opcodes();
std::span<const Opcode> mbarrier_opcodes();
std::span<const Opcode> async_copy_opcodes();
std::span<const Opcode> warp_opcodes();
std::span<const Opcode> wgmma_opcodes();
std::span<const Opcode> matrix_opcodes();
std::span<const Opcode> tcgen05_opcodes();

}  // namespace block_attention::simulator
