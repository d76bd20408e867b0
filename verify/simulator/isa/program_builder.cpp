#include "verify/simulator/isa/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/ptx/parse.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kSlotAlignment = 64;

std::uint32_t slot_bytes(unsigned bits) {
    if (bits == 1) return sizeof(LaneMask);
    return kWarpSize * (bits <= 32 ? 4U : bits <= 64 ? 8U : 16U);
}

unsigned bits_of(ptx::RegisterClass register_class) {
    switch (register_class) {
        case ptx::RegisterClass::predicate:
            return 1;
        case ptx::RegisterClass::b8:
            return 8;
        case ptx::RegisterClass::b16:
            return 16;
        case ptx::RegisterClass::b32:
            return 32;
        case ptx::RegisterClass::b64:
            return 64;
        case ptx::RegisterClass::b128:
            return 128;
    }
    return 0;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

template <typename Visit>
void visit_operands(const ptx::Operand& operand, const Visit& visit) {
    visit(operand);
    for (const auto& element : operand.elements) visit_operands(element, visit);
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::shared_ptr<const LoadedModule> module, const ptx::Function& function)
    : program_(std::make_shared<Program>()) {
    program_->module = std::move(module);
    program_->function = &function;
    lay_out_registers();
    count_reads();
    lay_out_parameters();
    lay_out_shared();
    lay_out_local();
}

void ProgramBuilder::fail(ptx::Position position, std::string_view message) const {
    throw ptx::PtxError(ptx::at(path(), position, message));
}

Slot ProgramBuilder::add_slot(unsigned bits) {
    if (bits != 1) {
        program_->register_bytes = static_cast<std::uint32_t>(round_up(program_->register_bytes, kSlotAlignment));
    }
    const Slot slot{program_->register_bytes, program_->slots++};
    program_->register_bytes += slot_bytes(bits);
    return slot;
}

void ProgramBuilder::lay_out_registers() {
    for (const auto& reg : function().registers) registers_.push_back(add_slot(bits_of(reg.register_class)));
}

void ProgramBuilder::count_reads() {
    reads_.resize(registers_.size());
    for (const auto& instruction : function().instructions) {
        for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
            // The first operand is a destination, unless it is an address or the instruction has no destination; to
            // count those as read as well errs on the side of a check too many.
            const ptx::Operand& operand = instruction.operands[i];
            const bool destination =
                i == 0 && (operand.kind == ptx::Operand::Kind::vector || operand.kind == ptx::Operand::Kind::register_);
            if (destination && instruction.opcode == "ld") continue;
            visit_operands(operand, [&](const ptx::Operand& part) {
                if (part.kind == ptx::Operand::Kind::register_) ++reads_[part.index];
            });
        }
    }
}

void ProgramBuilder::lay_out_parameters() {
    std::uint64_t bytes = 0;
    for (const auto& parameter : function().parameters) {
        bytes = round_up(bytes, std::max(1U, parameter.alignment));
        function_addresses_.push_back(bytes);
        program_->parameters.push_back({parameter.name, bytes, parameter.bytes});
        bytes += parameter.bytes;
    }
    if (bytes > kMaxParameterBytes) {
        fail(function().position, fmt::format("kernel '{}' has {} bytes of parameters; the limit is {}",
                                              function().name, bytes, kMaxParameterBytes));
    }
    program_->parameter_bytes = static_cast<std::uint32_t>(bytes);
}

void ProgramBuilder::lay_out_shared() {
    // The kernel's own variables, and those of the module that it uses.
    struct Entry {
        const ptx::Variable* variable;
        std::uint64_t* address;
    };
    std::vector<Entry> entries;
    function_addresses_.resize(function().variables.size());
    for (std::size_t i = 0; i < function().variables.size(); ++i) {
        const auto& variable = function().variables[i];
        if (variable.space == ptx::Space::shared) entries.push_back({&variable, &function_addresses_[i]});
    }
    std::set<std::uint32_t> used;
    for (const auto& instruction : function().instructions) {
        for (const auto& operand : instruction.operands) {
            visit_operands(operand, [&](const ptx::Operand& part) {
                if (part.kind == ptx::Operand::Kind::variable && part.module_scope) used.insert(part.index);
            });
        }
    }
    for (const std::uint32_t index : used) {
        const auto& variable = module().ptx.variables[index];
        if (variable.space == ptx::Space::shared) entries.push_back({&variable, &module_shared_[index]});
    }

    std::uint64_t end = kSharedBase;
    for (const auto& [variable, address] : entries) {
        if (variable->bytes == 0) continue;
        end = round_up(end, std::max(1U, variable->alignment));
        *address = end;
        program_->shared.push_back({variable->name, end, variable->bytes});
        end += variable->bytes;
    }
    if (end - kSharedBase > kMaxStaticSharedBytes) {
        fail(
            function().position,
            fmt::format("kernel '{}' has {} bytes of static shared memory; the limit is {}: take dynamic shared memory",
                        function().name, end - kSharedBase, kMaxStaticSharedBytes));
    }
    program_->static_shared_bytes = static_cast<std::uint32_t>(end - kSharedBase);

    // All extern arrays are views of the same dynamic shared memory.
    for (const auto& [variable, address] : entries) {
        if (variable->bytes != 0) continue;
        program_->dynamic_shared_alignment =
            std::max(program_->dynamic_shared_alignment, std::max(1U, variable->alignment));
    }
    for (const auto& [variable, address] : entries) {
        if (variable->bytes != 0) continue;
        *address = round_up(end, program_->dynamic_shared_alignment);
        program_->shared.push_back({variable->name, *address, 0});
    }
}

void ProgramBuilder::lay_out_local() {
    // Call parameters live in local memory as well: they are a thread's own.
    std::uint64_t bytes = 0;
    for (std::size_t i = function().parameters.size(); i < function().variables.size(); ++i) {
        const auto& variable = function().variables[i];
        if (variable.space != ptx::Space::local && variable.space != ptx::Space::param) continue;
        bytes = round_up(bytes, std::max(1U, variable.alignment));
        function_addresses_[i] = kLocalBase + bytes;
        program_->local.push_back({variable.name, kLocalBase + bytes, variable.bytes});
        bytes += variable.bytes;
        if (bytes > kMaxLocalBytes) {
            fail(variable.position, fmt::format("kernel '{}' has more than {} bytes of local memory a thread",
                                                function().name, kMaxLocalBytes));
        }
    }
    program_->local_bytes = static_cast<std::uint32_t>(bytes);
}

Slot ProgramBuilder::constant(std::uint64_t value, unsigned bits, bool shared_address) {
    const std::uint64_t kept = bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
    const auto [found, added] = constants_.try_emplace({kept, bits, shared_address});
    if (added) {
        found->second = add_slot(bits);
        program_->constants.push_back({found->second, bits, kept, shared_address});
    }
    return found->second;
}

Slot ProgramBuilder::special(std::string_view name, unsigned bits) {
    const auto [found, added] = specials_.try_emplace({name, bits});
    if (added) {
        found->second = add_slot(bits);
        program_->specials.push_back({name, found->second, bits});
    }
    return found->second;
}

Slot ProgramBuilder::scratch(unsigned bits) {
    const auto [found, added] = scratch_.try_emplace(bits);
    if (added) found->second = add_slot(bits);
    return found->second;
}

Slot ProgramBuilder::carry_flag() {
    if (!carry_flag_) carry_flag_ = add_slot(1);
    return *carry_flag_;
}

std::span<const Slot> ProgramBuilder::keep(std::span<const Slot> slots) {
    auto& list = program_->lists.emplace_back(std::make_unique<Slot[]>(slots.size()));
    std::ranges::copy(slots, list.get());
    return {list.get(), slots.size()};
}

ProgramBuilder::Place ProgramBuilder::place_of(const ptx::Operand& variable) const {
    const auto& declared = (variable.module_scope ? module().ptx.variables : function().variables)[variable.index];
    Place place{declared.space, 0, declared.bytes, declared.name};
    if (!variable.module_scope) {
        place.address = function_addresses_[variable.index];
        const bool call_parameter =
            declared.space == ptx::Space::param && variable.index >= function().parameters.size();
        if (call_parameter) place.space = ptx::Space::local;
    } else if (declared.space == ptx::Space::shared) {
        place.address = module_shared_.at(variable.index);
    } else {
        place.address = module().addresses[variable.index];
    }
    return place;
}

std::shared_ptr<const Program> ProgramBuilder::finish(std::vector<Decoded> code) {
    program_->code = std::move(code);
    program_->register_bytes = static_cast<std::uint32_t>(round_up(program_->register_bytes, kSlotAlignment));
    return std::move(program_);
}

}  // namespace block_attention::simulator
