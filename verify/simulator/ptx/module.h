#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// PTX as read: every name resolved, nothing interpreted. The instruction set (verify/simulator/isa) gives it a
/// meaning.
namespace block_attention::simulator::ptx {

/// A place in the PTX text, counted from 1.
struct Position {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
};

/// One .loc directive: the CUDA line that the instructions after it came from.
struct SourceLine {
    std::uint32_t file = 0;  ///< number in Module::files; 0: unknown
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::int32_t inlined_at = -1;  ///< index in Module::source_lines of the call site, or -1
};

enum class Space : std::uint8_t { global, shared, local, param, constant };

/// Width class of a register. PTX register types beyond their width carry no meaning at run time: an instruction's own
/// type decides (nvcc 13 declares .f32 registers as .b32 for sm_100a and as .f32 for sm_90a).
enum class RegisterClass : std::uint8_t { predicate, b8, b16, b32, b64, b128 };

struct Register {
    std::string_view name;  ///< of a range: the prefix ("%r" of %r<12>) until an instruction names the register
    RegisterClass register_class = RegisterClass::b32;
};

/// A variable in memory: module-scope, function-scope, kernel parameter or call parameter.
struct Variable {
    std::string_view name;
    Space space = Space::global;
    std::uint32_t alignment = 1;  ///< bytes
    std::uint64_t bytes = 0;      ///< 0 for an extern array of unknown size (dynamic shared memory)
    bool external = false;
    std::vector<std::byte> initial;  ///< empty: uninitialised (.global variables are then zero, PTX ISA 5.1.4)
    Position position;
};

/// One operand. Vectors and lists hold their elements in `elements`.
struct Operand {
    enum class Kind : std::uint8_t {
        register_,         ///< `index` in Function::registers
        integer,           ///< `integer`, as 64 bits of two's complement
        floating,          ///< `integer` holds the bits, `float_bits` is 32 (0f) or 64 (0d, or a decimal literal)
        special_register,  ///< `name`, such as "%tid.x" or "WARP_SZ"
        address,           ///< [base + integer]: `elements[0]` is the base, a register, variable or integer
        variable,          ///< `index` in Function::variables, or in Module::variables if `module_scope`
        label,             ///< `index` is the instruction it stands before, or the number of instructions at the end
        function,          ///< `name` of a call's target, `index` in Module::functions
        vector,            ///< {a, b, ...}
        list,              ///< (a, b, ...) of a call
        pair,              ///< a|b
        tensor_address,    ///< [map + integer, {c0, c1, ...}]: `elements[0]` is the map's address, then the coordinates
        sink,              ///< _
    };
    Kind kind = Kind::sink;
    bool negated = false;  ///< !p, or -x of a register
    bool module_scope = false;
    std::uint8_t float_bits = 0;
    std::uint32_t index = 0;
    std::int64_t integer = 0;  ///< also a variable operand's byte offset: var+4
    std::string_view name;     ///< as written, of every kind that is a name
    std::vector<Operand> elements;
};

struct Guard {
    std::uint32_t predicate = 0;  ///< index in Function::registers
    bool negated = false;
};

struct Instruction {
    std::string_view opcode;                  ///< "ld"
    std::vector<std::string_view> modifiers;  ///< in text order: "global", "nc", "v4", "f32", "shared::cta"
    std::optional<Guard> guard;
    std::vector<Operand> operands;
    Position position;              ///< of the guard, or of the opcode if there is none
    std::int32_t source_line = -1;  ///< index in Module::source_lines, or -1
};

/// A kernel (.entry) or a device function (.func).
struct Function {
    std::string_view name;
    bool entry = false;
    bool has_body = false;
    std::vector<Variable> parameters;  ///< in order; Space::param
    std::vector<Variable> results;     ///< of a .func
    std::vector<Register> registers;   ///< of every scope; a name may occur more than once
    /// Of every scope: the parameters first, then the results, then .local, .shared, .param and others in text order.
    std::vector<Variable> variables;
    std::vector<Instruction> instructions;
    std::optional<std::vector<std::uint32_t>> max_threads;       ///< .maxntid, one to three extents as written
    std::optional<std::vector<std::uint32_t>> required_threads;  ///< .reqntid
    std::optional<std::vector<std::uint32_t>> required_cluster;  ///< .reqnctapercluster
    std::optional<std::uint32_t> max_registers;                  ///< .maxnreg
    Position position;
};

struct Module {
    std::shared_ptr<const std::string> text;  ///< every string_view of the module points into it
    std::string path;                         ///< as given, for messages
    std::uint32_t version_major = 0;
    std::uint32_t version_minor = 0;
    std::string_view target;  ///< "sm_90a"
    std::unordered_map<std::uint32_t, std::string_view> files;
    std::vector<SourceLine> source_lines;
    std::vector<Variable> variables;
    std::vector<Function> functions;

    /// The kernel of that name that has a body, or null.
    [[nodiscard]] const Function* find_kernel(std::string_view name) const;
};

/// An instruction of the module as written, with its guard, without comments and semicolon, blanks and line breaks
/// collapsed: "@%p1 st.global.f32 [%rd1+4], %f2".
std::string instruction_text(const Module& module, const Instruction& instruction);

}  // namespace block_attention::simulator::ptx
