#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/device/finding.h"
#include "verify/simulator/isa/program.h"

namespace block_attention::simulator {

struct Grid;

/// What a kernel can do wrong.
enum class Rule : std::uint8_t {
    uninitialized_read,  ///< of a register or of memory
    out_of_bounds,
    misaligned,
    read_only,      ///< a store to constant or parameter memory
    membermask,     ///< a warp-wide instruction whose lanes and mask disagree
    barrier,        ///< a barrier with a wrong number or count
    mbarrier,       ///< misuse of an mbarrier object
    cluster,        ///< misuse of the cluster's barrier, or of the shared memory of a CTA that is not there
    copy,           ///< an asynchronous copy with operands that it cannot have
    tensor_map,     ///< 128 bytes that are no tensor map
    matrix,         ///< a matrix product with operands that it cannot have
    tensor_memory,  ///< misuse of Tensor Memory
    still_running,  ///< a CTA that exits before its asynchronous operations are done with its memory
    deadlock,
    trap,
    step_limit,
};

/// "out-of-bounds" and so on.
std::string_view name_of(Rule rule);

/// The findings of one CTA. Each rule is reported once for an instruction, with the number of threads it met.
class FindingLog {
  public:
    struct Key {
        std::uint32_t instruction = 0;
        Rule rule = Rule::trap;
        auto operator<=>(const Key&) const = default;
    };
    struct Entry {
        std::string message;
        Dim3 thread;
        std::uint64_t occurrences = 0;
        std::uint32_t order = 0;  ///< among the CTA's findings
    };

    /// Counts occurrences; the first one also asks `describe` for its message.
    void add(Rule rule, std::uint32_t instruction, Dim3 thread, std::uint64_t occurrences,
             const std::function<std::string()>& describe);

    [[nodiscard]] bool empty() const { return entries_.empty(); }
    void clear() { entries_.clear(); }
    std::map<Key, Entry>& entries() { return entries_; }

  private:
    std::map<Key, Entry> entries_;
};

/// The findings of a grid, gathered from CTAs that end in any order, and reported as if they had run one by one.
class FindingCollector {
  public:
    explicit FindingCollector(const Grid& grid);

    /// Takes over what a CTA found. Thread-safe.
    void add(std::uint64_t cta, FindingLog& log);

    /// The findings of the CTAs up to and including `last`, in the order of CTAs; at most `limit` of them.
    [[nodiscard]] std::vector<Finding> report(std::uint64_t last, std::size_t limit) const;

  private:
    struct Gathered {
        FindingLog::Entry first;
        std::uint64_t cta = 0;                                        ///< of the first
        std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  ///< CTA, occurrences
    };

    [[nodiscard]] Finding make_finding(const FindingLog::Key& key, const Gathered& gathered, std::uint64_t last) const;

    const Program& program_;
    const Grid& grid_;
    std::mutex mutex_;
    std::map<FindingLog::Key, Gathered> gathered_;
};

/// A CUDA source line, or the PTX file's own when the kernel has no line information.
struct SourcePlace {
    std::string_view file;
    std::uint32_t line = 0;
};

/// Where an instruction came from, and where that was inlined, innermost first. The toolkit's own headers are left out,
/// since a reader looks for their own code, unless there is nothing else.
std::vector<SourcePlace> source_places(const Program& program, std::uint32_t instruction);
/// The first of them.
SourcePlace source_place(const Program& program, std::uint32_t instruction);

/// "ptx.cuh:40 (from kernel.cu:12)", for messages.
std::string place_text(const Program& program, std::uint32_t instruction);

/// The text of an instruction, on one line.
std::string instruction_text(const Program& program, std::uint32_t instruction);

/// Entry number `linear` of a box, x running fastest.
Dim3 unflatten(std::uint64_t linear, Dim3 box);

}  // namespace block_attention::simulator
