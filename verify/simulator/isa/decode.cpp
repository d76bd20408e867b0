#include "verify/simulator/isa/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "verify/simulator/isa/control.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/types.h"

namespace block_attention::simulator {

namespace {

using Table = std::unordered_map<std::string_view, Decode>;

Table make_table(std::initializer_list<std::span<const Opcode>> families) {
    Table table;
    for (const auto family : families) {
        for (const auto& opcode : family) table.emplace(opcode.name, opcode.decode);
    }
    return table;
}

/// What decodes an opcode. Some, such as add, exist for integers and for floating-point types.
Decode find_decoder(const ptx::Instruction& instruction) {
    static const Table floating = make_table({floating_opcodes(), extremum_opcodes()});
    static const Table others = make_table(
        {integer_opcodes(),     carry_opcodes(),      dot_product_opcodes(), bit_opcodes(),       mask_opcodes(),
         approximate_opcodes(), conversion_opcodes(), compare_opcodes(),     selection_opcodes(), move_opcodes(),
         memory_opcodes(),      atomic_opcodes(),     control_opcodes(),     barrier_opcodes(),   cluster_opcodes(),
         mbarrier_opcodes(),    async_copy_opcodes(), warp_opcodes(),        wgmma_opcodes(),     matrix_opcodes(),
         tcgen05_opcodes()});
    const bool has_float_type = std::ranges::any_of(instruction.modifiers, [](std::string_view modifier) {
        const auto type = parse_type(modifier);
        return type && is_float(*type);
    });
    const auto first = has_float_type ? floating.find(instruction.opcode) : floating.end();
    if (first != floating.end()) return first->second;
    const auto second = others.find(instruction.opcode);
    return second == others.end() ? nullptr : second->second;
}

}  // namespace

std::shared_ptr<const Program> decode_kernel(std::shared_ptr<const LoadedModule> module, const ptx::Function& kernel) {
    ProgramBuilder builder(std::move(module), kernel);
    std::vector<Decoded> code;
    code.reserve(kernel.instructions.size() + 1);
    for (const auto& instruction : kernel.instructions) {
        Decoder decoder(builder, instruction);
        const Decode decode = find_decoder(instruction);
        if (decode == nullptr) {
            decoder.refuse(
                fmt::format("opcode '{}' is not simulated (in kernel '{}')", instruction.opcode, kernel.name));
        }
        decode(decoder);
        code.push_back(decoder.result);
    }
    code.push_back(final_exit());
    return builder.finish(std::move(code));
}

}  // namespace block_attention::simulator
