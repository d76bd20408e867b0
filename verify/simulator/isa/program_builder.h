#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "verify/simulator/isa/program.h"

namespace block_attention::simulator {

/// Lays out a kernel's registers, constants and variables while its instructions are decoded.
class ProgramBuilder {
  public:
    /// Throws ptx::PtxError if the kernel's variables exceed the machine's memories.
    ProgramBuilder(std::shared_ptr<const LoadedModule> module, const ptx::Function& function);

    [[nodiscard]] const LoadedModule& module() const { return *program_->module; }
    [[nodiscard]] const ptx::Function& function() const { return *program_->function; }
    [[nodiscard]] const std::string& path() const { return program_->module->ptx.path; }

    [[nodiscard]] Slot register_slot(std::uint32_t index) const { return registers_[index]; }
    /// How many source operands name a register, addresses and vectors included.
    [[nodiscard]] std::uint32_t reads_of(std::uint32_t index) const { return reads_[index]; }
    /// A constant of `bits` bits (1 for a predicate, up to 128; a 128-bit one has zeros above its low 64 bits).
    Slot constant(std::uint64_t value, unsigned bits) { return constant(value, bits, false); }
    /// An address that is the same in every CTA but for the rank in bits 24 and up: of a shared variable.
    Slot shared_address(std::uint64_t value, unsigned bits) { return constant(value, bits, true); }
    Slot special(std::string_view name, unsigned bits);
    /// A register that is written and never read.
    Slot scratch(unsigned bits);
    /// The flag that additions with carry pass on: one predicate for the whole kernel.
    Slot carry_flag();
    /// Keeps operands of any number for the program's life.
    std::span<const Slot> keep(std::span<const Slot> slots);

    /// The place of a variable operand: its space, as the machine has it, and its address there.
    struct Place {
        ptx::Space space = ptx::Space::global;
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;  ///< 0: unknown, an extern array
        std::string_view name;
    };
    [[nodiscard]] Place place_of(const ptx::Operand& variable) const;

    /// Hands over the program, with its code.
    std::shared_ptr<const Program> finish(std::vector<Decoded> code);

  private:
    void lay_out_registers();
    void lay_out_parameters();
    void lay_out_shared();
    void lay_out_local();
    void count_reads();
    Slot add_slot(unsigned bits);
    Slot constant(std::uint64_t value, unsigned bits, bool shared_address);
    [[noreturn]] void fail(ptx::Position position, std::string_view message) const;

    std::shared_ptr<Program> program_;
    std::vector<Slot> registers_;
    std::vector<std::uint32_t> reads_;
    std::map<std::tuple<std::uint64_t, unsigned, bool>, Slot> constants_;
    std::map<std::pair<std::string_view, unsigned>, Slot> specials_;
    std::map<unsigned, Slot> scratch_;
    std::optional<Slot> carry_flag_;
    std::vector<std::uint64_t> function_addresses_;         ///< of Function::variables
    std::map<std::uint32_t, std::uint64_t> module_shared_;  ///< addresses of used module-scope shared variables
};

}  // namespace block_attention::simulator
