#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/simulator/ptx/module.h"

/// A kernel, decoded once: what the machine executes. The decoders of verify/simulator/isa fill it in.
namespace block_attention::simulator {

inline constexpr unsigned kWarpSize = 32;

/// A set of lanes of a warp, lane 0 in bit 0.
using LaneMask = std::uint32_t;
inline constexpr LaneMask kAllLanes = 0xFFFFFFFF;

class Warp;

/// Where a register lives in a warp's register memory. Data are 32 lanes side by side: 4 bytes a lane for registers of
/// up to 32 bits (the bits above the register's own are zero), 8 for 64 bits, 2 x 8 for 128 bits (all low halves, then
/// all high halves). A predicate is one LaneMask.
struct Slot {
    std::uint32_t offset = 0;  ///< of the data, in bytes
    std::uint32_t index = 0;   ///< among all slots: the virtual registers in PTX order, then the constants
};

/// What an instruction did to its warp's flow of control.
enum class Outcome : std::uint8_t {
    next,        ///< the lanes go on to the next instruction
    jump,        ///< all lanes of the fragment go to Decoded::target
    reschedule,  ///< the executor itself has placed every lane of the fragment (divergence, a wait, an exit)
};

struct Decoded;
struct BarrierReduction;
using Execute = Outcome (*)(Warp& warp, const Decoded& instruction);
using Complete = void (*)(Warp& warp, const Decoded& instruction, const BarrierReduction& reduction);

/// One instruction, ready to execute. What the fields beyond `execute` and the guard mean is up to the executor.
struct Decoded {
    Execute execute = nullptr;
    Complete complete = nullptr;  ///< of an instruction that waits: writes its result when the wait is over
    bool guarded = false;
    LaneMask guard_flip = 0;  ///< all ones for @!p
    Slot guard;
    std::array<Slot, 5> slots;   ///< by convention the destination first, then the sources
    std::span<const Slot> list;  ///< operands of any number: vector elements
    std::uint64_t immediate = 0;
    std::uint32_t target = 0;    ///< of a jump: index of an instruction
    LaneMask flip = 0;           ///< all ones if a predicate operand is negated
    std::uint32_t needed = ~0U;  ///< a load: bit i is clear if nobody reads byte i of the result
    std::uint16_t bytes = 0;     ///< a memory access: bytes per lane
    std::uint8_t flags = 0;
    ptx::Space space = ptx::Space::global;
    bool generic = false;  ///< a memory access by generic address
    bool cluster = false;  ///< an access to .shared::cluster: another CTA's shared memory is in reach
};

/// A special register that a kernel reads as a constant of its warp.
struct SpecialUse {
    std::string_view name;
    Slot slot;
    unsigned bits = 32;
};

/// A value that a kernel reads as a constant: the same in every lane of every warp.
struct ConstantUse {
    Slot slot;
    unsigned bits = 32;  ///< 1 for a predicate
    std::uint64_t value = 0;
    bool shared_address = false;  ///< the CTA's rank in its cluster is added, in bits 24 and up
};

/// A variable's place in shared, local or parameter memory, for messages and address arithmetic.
struct PlacedVariable {
    std::string_view name;
    std::uint64_t address = 0;  ///< in its own state space
    std::uint64_t bytes = 0;    ///< 0: an extern array, which takes the launch's dynamic shared memory
};

/// A PTX module with its module-scope variables placed in global memory.
struct LoadedModule {
    explicit LoadedModule(std::shared_ptr<const ptx::Module> module) : owner(std::move(module)), ptx(*owner) {}

    std::shared_ptr<const ptx::Module> owner;  ///< several simulators may share one
    const ptx::Module& ptx;
    std::vector<std::uint64_t> addresses;  ///< of ptx.variables; 0 for shared ones, which every kernel places itself
};

/// A decoded kernel. Immutable and shared by every warp that executes it.
struct Program {
    std::shared_ptr<const LoadedModule> module;
    const ptx::Function* function = nullptr;
    std::vector<Decoded> code;  ///< one for each PTX instruction, and a final exit
    std::vector<std::unique_ptr<Slot[]>> lists;

    std::uint32_t register_bytes = 0;  ///< of a warp's register memory
    std::uint32_t slots = 0;
    std::vector<ConstantUse> constants;
    std::vector<SpecialUse> specials;

    std::vector<PlacedVariable> shared;  ///< extern arrays last
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t dynamic_shared_alignment = 1;
    std::vector<PlacedVariable> local;
    std::uint32_t local_bytes = 0;  ///< per thread
    std::vector<PlacedVariable> parameters;
    std::uint32_t parameter_bytes = 0;
};

}  // namespace block_attention::simulator
