/// Instructions by which the lanes of a warp exchange values, and reductions of a CTA's barriers (PTX ISA 9.7.9 and
/// 9.7.13).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

/// A member mask, and what leaves only its lanes to execute the instruction.
struct Members {
    std::string_view note;
    std::string_view mask;
    std::string_view guard;  ///< code that sets %xp3 for the lanes of the mask
};

constexpr std::array kMembers{
    Members{"", "0xffffffff", ""},
    Members{"@half-warp", "0x0000ffff", "setp.lt.u32 %xp3, %lane, 16; "},
    Members{"@odd-lanes", "0xaaaaaaaa", "and.b32 %xw3, %lane, 1; setp.ne.u32 %xp3, %xw3, 0; "},
};

/// One instruction, executed by the members. The others keep what the results hold before it.
void add_voted(FormList& list, const std::string& opcode, Kinds results, Kinds operands, std::string_view before,
               std::string_view text) {
    for (const auto& members : kMembers) {
        std::string code;
        for (std::size_t k = 0; k < results.size(); ++k) {
            code += results[k] == 'p' ? fmt::format("mov.pred %d{}, 0; ", k)
                                      : fmt::format("mov.b{} %d{}, 77; ", bits_of(results[k]), k);
        }
        code += before;
        code += members.guard;
        code += fmt::format("{}{} {}, {};", members.guard.empty() ? "" : "@%xp3 ", opcode, text, members.mask);
        list.add_code(fmt::format("{}{}", opcode, members.note), results, operands, code);
    }
}

void add_shuffles(FormList& list) {
    for (const auto* mode : {"up", "down", "bfly", "idx"}) {
        const std::string opcode = fmt::format("shfl.sync.{}.b32", mode);
        list.add(opcode, "w", "waa", "");
    }
}

void add_votes(FormList& list) {
    for (const auto* mode : {"all", "any", "uni"}) {
        add_voted(list, fmt::format("vote.sync.{}.pred", mode), "p", "p", "", "%d0, %a");
    }
    add_voted(list, "vote.sync.ballot.b32", "w", "p", "", "%d0, %a");
    list.add_code("vote.sync.ballot.b32@negated", "w", "p", "vote.sync.ballot.b32 %d0, !%a, -1;");
    list.add_code("vote.sync.all.pred@negated", "p", "p", "vote.sync.all.pred %d0, !%a, -1;");
    for (const auto& [type, kind] : {TypeName{"b32", 'w'}, TypeName{"b64", 'l'}}) {
        // Few different values, so that some meet.
        const std::string few = fmt::format("and.b{} %a, %a, 3; ", bits_of(kind));
        add_voted(list, fmt::format("match.any.sync.{}", type), "w", times(kind), few, "%d0, %a");
        add_voted(list, fmt::format("match.all.sync.{}", type), "wp", times(kind), few, "%d0|%d1, %a");
        list.add_code(fmt::format("match.all.sync.{}@equal", type), "wp", times(kind),
                      fmt::format("shr.b32 %xw0, %number, 6; and.b{0} %a, %a, 0; match.all.sync.b{0} %d0|%d1, %a, -1;",
                                  bits_of(kind)));
    }
    for (const auto* operation : {"add", "min", "max", "and", "or", "xor"}) {
        for (const auto* type : {"u32", "s32", "b32"}) {
            add_voted(list, fmt::format("redux.sync.{}.{}", operation, type), "w", "w", "", "%d0, %a");
        }
    }
    add_voted(list, "elect.sync", "wp", "", "", "%d0|%d1");
    list.add_code("activemask.b32", "w", "", "activemask.b32 %d0;");
}

/// The members of a shuffle read from members alone: anything else is undefined.
void add_shuffle_operands(FormList& list) {
    for (const auto* mode : {"up", "down", "bfly", "idx"}) {
        list.add_code(fmt::format("shfl.sync.{}.b32@pair", mode), "wp", "waa",
                      fmt::format("shfl.sync.{}.b32 %d0|%d1, %a, %b, %c, -1;", mode));
        // Segments of 2 to 32 lanes, as __shfl_sync makes them.
        list.add_code(fmt::format("shfl.sync.{}.b32@segments", mode), "wp", "waa",
                      fmt::format("and.b32 %c, %c, 7; min.u32 %c, %c, 5; shl.b32 %xw0, 1, %c; sub.u32 %xw0, 32, %xw0; "
                                  "shl.b32 %xw0, %xw0, 8; {} "
                                  "shfl.sync.{}.b32 %d0|%d1, %a, %b, %xw0, -1;",
                                  std::string_view(mode) == "up" ? "" : "or.b32 %xw0, %xw0, 31;", mode));
    }
    list.add_code("shfl.sync.bfly.b32@half-warp", "wp", "wa",
                  "mov.b32 %d0, 77; mov.pred %d1, 0; and.b32 %b, %b, 15; setp.lt.u32 %xp3, %lane, 16; @%xp3 "
                  "shfl.sync.bfly.b32 %d0|%d1, %a, %b, 31, "
                  "0xffff;");
    list.add_code("shfl.sync.idx.b32@half-warp", "wp", "wa",
                  "mov.b32 %d0, 77; mov.pred %d1, 0; and.b32 %b, %b, 15; setp.lt.u32 %xp3, %lane, 16; @%xp3 "
                  "shfl.sync.idx.b32 %d0|%d1, %a, %b, 31, "
                  "0xffff;");
}

void add_barriers(FormList& list) {
    for (const auto& barrier : combine(
             {{"bar", "bar.cta", "barrier", "barrier.cta"}, {".red"}, {".popc", ".and", ".or"}, {"", ".aligned"}})) {
        const bool count = barrier.find(".popc") != std::string::npos;
        const std::string opcode = barrier + (count ? ".u32" : ".pred");
        const char* result = count ? "w" : "p";
        list.add_code(opcode, result, "p", fmt::format("{} %d0, 0, %a;", opcode));
        list.add_code(opcode + "@negated", result, "p", fmt::format("{} %d0, 1, !%a;", opcode));
        list.add_code(opcode + "@counted", result, "p", fmt::format("{} %d0, 15, {}, %a;", opcode, kThreads));
        // The two halves of a CTA, each at a barrier of its own.
        list.add_code(opcode + "@halves", result, "p",
                      fmt::format("shr.u32 %xw0, %thread, 7; add.u32 %xw0, %xw0, 2; {} %d0, %xw0, 128, %a;", opcode));
    }
}

}  // namespace

void add_warp_forms(FormList& list) {
    list.group("exchange within a warp");
    add_shuffles(list);
    add_shuffle_operands(list);
    add_votes(list);
    list.group("reductions of a barrier");
    add_barriers(list);
}

}  // namespace block_attention::conformance
