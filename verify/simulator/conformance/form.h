#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Conformance: every form of an instruction (opcode, modifiers, types) in a kernel of its own, whose results on a GPU
/// are known.
namespace block_attention::conformance {

/// What an operand or a result is, as one letter: the width of its register and the values that it takes.
///
///     p  predicate                     e  f16           E  f16x2
///     h  16-bit integer                g  bf16          G  bf16x2
///     w  32-bit integer                f  f32           x  u16x2, s16x2
///     l  64-bit integer                d  f64           a  32-bit shift amount, bit position or length
using Kind = char;

/// A list of kinds: "ff" for two floats.
using Kinds = std::string_view;

/// The register type that holds a kind: "b32".
std::string_view register_type(Kind kind);
/// Bits of a value of that kind; 1 for a predicate.
unsigned bits_of(Kind kind);

/// One instruction form. Its code finds operands in %a, %b, %c, %e and puts results into %d0, %d1, ...
///
/// Code that mentions these finds them set up:
///     %mem    64-bit address of 32 bytes of global memory of this thread's own
///     %own    64-bit global address of this thread's operand %a; operand k follows kTupleStride * k bytes later
///     %cell   32-bit shared-memory address of 32 bytes of this thread's own
///     stack   32 bytes of local memory
///     table   64 bytes of constant memory
///     bytes   a kernel parameter of 32 bytes
///     %thread, %lane  the thread's number in its CTA of kThreads threads, and in its warp
///     %xl0 to %xl3, %xw0 to %xw3, %xh0 to %xh3, %xp0 to %xp3  free 64-, 32-, 16-bit and predicate registers
struct Form {
    std::string name;   ///< unique: the opcode with its modifiers, and after a '@' what else distinguishes it
    std::string group;  ///< the row that it belongs to in the documentation's table
    std::string code;
    std::string results;   ///< a kind each
    std::string operands;  ///< a kind each, at most 4
};

/// Each form is executed on so many tuples of operands, and its results are hashed in four quarters.
inline constexpr std::size_t kTuples = 4096;
inline constexpr std::size_t kQuarters = 4;
inline constexpr std::size_t kTuplesPerQuarter = kTuples / kQuarters;
/// A kernel's block: a tuple is a thread's, and a tuple's number the thread's in the grid.
inline constexpr std::uint32_t kThreads = 256;
/// Bytes between two operands or results of a thread: all tuples' values of one operand lie side by side.
inline constexpr std::size_t kTupleStride = kTuples * sizeof(std::uint64_t);
/// Bytes of global memory that belong to one thread (%mem).
inline constexpr std::size_t kMemoryBytes = 32;

/// The kernel of a form, named `kernel`. Its parameters are the addresses of operands, results and %mem, and `bytes`.
std::string kernel_text(const Form& form, std::string_view kernel);
/// What a PTX module for sm_90a that holds such kernels begins with.
std::string module_header();

/// Forms under construction.
class FormList {
  public:
    /// Forms that follow belong to this row of the table.
    void group(std::string name) { group_ = std::move(name); }
    /// One instruction, with the results and then the operands in order: add("add.s32", "w", "ww") is
    /// "add.s32 %d0, %a, %b;". A note tells forms of the same name apart.
    void add(const std::string& opcode, Kinds results, Kinds operands, std::string_view note = "");
    /// Any code.
    void add_code(std::string name, Kinds results, Kinds operands, std::string code);

    [[nodiscard]] std::span<const Form> forms() const { return forms_; }
    std::vector<Form> take() { return std::move(forms_); }

  private:
    std::string group_;
    std::vector<Form> forms_;
};

/// Texts to choose one of; "" chooses nothing.
using Choices = std::vector<std::string>;

/// All texts made of one of each choices, in order: combine({{".rn", ".rz"}, {"", ".ftz"}}) has 4.
std::vector<std::string> combine(const std::vector<Choices>& choices);

/// A type's name and its kind.
struct TypeName {
    std::string_view name;
    Kind kind;
};

/// The kind as a list of one or of `count`.
inline std::string times(Kind kind, std::size_t count = 1) { return std::string(count, kind); }

}  // namespace block_attention::conformance
