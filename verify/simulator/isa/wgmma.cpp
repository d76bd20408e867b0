/// wgmma (PTX ISA 9.7.15), dense, with 16-bit operands.
#include "verify/simulator/engines/wgmma.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/registers_in_flight.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kWarpsPerGroup = 4;

// Slots: 0 descriptor A, 1 descriptor B, 2 scale-d. The list is D, then A if in registers. Decoded::target is N,
// Decoded::bytes the number of D's registers. Decoded::needed:
constexpr std::uint32_t kBfloat16 = 1;
constexpr std::uint32_t kHalfAccumulator = 2;
constexpr std::uint32_t kNegateA = 4;
constexpr std::uint32_t kNegateB = 8;
constexpr std::uint32_t kTransposeA = 16;
constexpr std::uint32_t kTransposeB = 32;

Outcome execute_fence(Warp& warp, const Decoded& i) { return warp.converged(i) ? Outcome::next : Outcome::reschedule; }

/// What all lanes of the warp must agree on.
template <typename Cell>
void require_uniform(Warp& warp, const Decoded& i, Slot slot, std::string_view name) {
    const Cell* lanes = warp.lanes_of<Cell>(slot);
    for (unsigned lane = 1; lane < kWarpSize; ++lane) {
        if (lanes[lane] == lanes[0]) continue;
        warp.report(Rule::matrix, i, LaneMask{1} << lane, [&] {
            return fmt::format("{} differs between the lanes of a warp: {:#x} in lane 0, {:#x} in lane {}", name,
                               lanes[0], lanes[lane], lane);
        });
        return;
    }
}

Outcome execute_multiply(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    Cta& cta = warp.cta();
    if (warp.alive() != kAllLanes ||
        warp.index() / kWarpsPerGroup * kWarpsPerGroup + kWarpsPerGroup > cta.warps().size()) {
        warp.report(Rule::matrix, i, warp.active(), [&] {
            return fmt::format(
                "warp {} is not part of a warpgroup of {} full warps, of which the first one's number is a "
                "multiple of {}",
                warp.index(), kWarpsPerGroup, kWarpsPerGroup);
        });
        return Outcome::next;
    }
    warp.require(i, i.slots[0], i.slots[1], i.slots[2]);
    const bool a_in_registers = i.list.size() > i.bytes;
    if (!a_in_registers) require_uniform<std::uint64_t>(warp, i, i.slots[0], "the descriptor of A");
    require_uniform<std::uint64_t>(warp, i, i.slots[1], "the descriptor of B");
    const LaneMask scale = warp.predicate(i.slots[2]) ^ i.flip;
    if (scale != 0 && scale != kAllLanes) {
        warp.report(Rule::matrix, i, warp.active(), [] { return "scale-d differs between the lanes of a warp"; });
    }
    Wgmma operation{
        .issuer = {&warp, &i, 0},
        .n = i.target,
        .type = (i.needed & kBfloat16) != 0 ? OperandType::bf16 : OperandType::f16,
        .accumulation = {.type = (i.needed & kHalfAccumulator) != 0 ? AccumulatorType::f16 : AccumulatorType::f32,
                         .add_c = (scale & 1) != 0},
        .negate_a = (i.needed & kNegateA) != 0,
        .negate_b = (i.needed & kNegateB) != 0,
        .major_a = (i.needed & kTransposeA) != 0 ? Major::mn : Major::k,
        .major_b = (i.needed & kTransposeB) != 0 ? Major::mn : Major::k,
        .descriptor_a = warp.lanes_of<std::uint64_t>(i.slots[0])[0],
        .descriptor_b = warp.lanes_of<std::uint64_t>(i.slots[1])[0],
        .d = i.list.first(i.bytes),
        .a = i.list.subspan(i.bytes)};
    for (const Slot slot : operation.a) warp.require(i, slot);
    if (operation.accumulation.add_c) {
        for (const Slot slot : operation.d) {
            if (!warp.in_flight().contains(slot)) warp.require(i, slot);
        }
    }
    cta.check_warpgroup(warp, i, {operation.descriptor_a, operation.descriptor_b});
    cta.wgmma_queue(warp).issue(operation);
    return Outcome::next;
}

Outcome execute_commit(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    warp.cta().wgmma_queue(warp).commit();
    return Outcome::next;
}

Outcome execute_wait(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (!warp.cta().wgmma_queue(warp).wait(warp, i.immediate)) return warp.park(i, Wait::engine, 0);
    return Outcome::next;
}

/// Takes the shape m64nNk16 and returns N.
std::uint32_t take_shape(Decoder& d) {
    for (const auto modifier : d.instruction().modifiers) {
        if (!modifier.starts_with("m64n")) continue;
        std::uint32_t n = 0;
        const char* end = modifier.data() + modifier.size();
        const auto [rest, error] = std::from_chars(modifier.data() + 4, end, n);
        if (error != std::errc()) break;
        if (std::string_view(rest, static_cast<std::size_t>(end - rest)) != "k16") {
            d.refuse(fmt::format("the shape .{} is not simulated, only k16: operands of 16 bits", modifier));
        }
        if (n < 8 || n > 256 || n % 8 != 0) d.refuse(fmt::format("N is {}; it is a multiple of 8 up to 256", n));
        d.take(modifier);
        return n;
    }
    d.refuse("the shape is missing: .m64n8k16 to .m64n256k16");
}

bool take_bit(Decoder& d, std::size_t operand, std::string_view name) {
    const std::int64_t value = d.immediate(operand);
    if (value != 0 && value != 1) d.refuse_operand(d.operand(operand), fmt::format("{} is 0 or 1", name));
    return value == 1;
}

bool take_negation(Decoder& d, std::size_t operand, std::string_view name) {
    const std::int64_t value = d.immediate(operand);
    if (value != 1 && value != -1) d.refuse_operand(d.operand(operand), fmt::format("{} is 1 or -1", name));
    return value == -1;
}

/// The registers of a vector operand.
void add_registers(Decoder& d, const ptx::Operand& operand, std::size_t count, bool destination,
                   std::vector<Slot>& slots) {
    if (operand.kind != ptx::Operand::Kind::vector || operand.elements.size() != count) {
        d.refuse_operand(operand, fmt::format("a vector of {} registers is needed", count));
    }
    for (const auto& element : operand.elements) {
        slots.push_back(destination ? d.destination(element, Type::b32) : d.source(element, Type::b32));
    }
}

void decode_multiply(Decoder& d) {
    if (d.take("sp")) d.refuse("sparse products, .sp, are not simulated");
    if (!d.take("sync") || !d.take("aligned")) d.refuse(".sync.aligned is missing");
    const std::uint32_t n = take_shape(d);
    std::uint32_t flags = 0;
    const Type accumulator = d.take_type();
    const Type type_a = d.take_type();
    const Type type_b = d.take_type();
    if (type_a != type_b || (type_a != Type::f16 && type_a != Type::bf16)) {
        d.refuse("only .f16.f16 and .bf16.bf16 operands are simulated");
    }
    if (accumulator != Type::f32 && !(accumulator == Type::f16 && type_a == Type::f16)) {
        d.refuse("the accumulator is .f32, or with .f16 operands .f16");
    }
    d.finish_modifiers();
    if (type_a == Type::bf16) flags |= kBfloat16;
    if (accumulator == Type::f16) flags |= kHalfAccumulator;

    const bool a_in_registers = d.operands() > 1 && d.operand(1).kind == ptx::Operand::Kind::vector;
    d.expect_operands(a_in_registers ? 7 : 8);
    std::vector<Slot> slots;
    add_registers(d, d.operand(0), accumulator == Type::f16 ? n / 4 : n / 2, true, slots);
    d.result.bytes = static_cast<std::uint16_t>(slots.size());
    if (a_in_registers) {
        add_registers(d, d.operand(1), 4, false, slots);
        d.result.slots[0] = d.builder().constant(0, 64);
    } else {
        d.result.slots[0] = d.source(1, Type::b64);
    }
    d.result.slots[1] = d.source(2, Type::b64);
    const auto scale = d.predicate_source(3);
    d.result.slots[2] = scale.slot;
    d.result.flip = scale.flip;
    if (take_negation(d, 4, "imm-scale-a")) flags |= kNegateA;
    if (take_negation(d, 5, "imm-scale-b")) flags |= kNegateB;
    if (!a_in_registers && take_bit(d, 6, "imm-trans-a")) flags |= kTransposeA;
    if (take_bit(d, a_in_registers ? 6 : 7, "imm-trans-b")) flags |= kTransposeB;
    d.result.list = d.builder().keep(slots);
    d.result.target = n;
    d.result.needed = flags;
    d.result.execute = &execute_multiply;
}

void decode_wgmma(Decoder& d) {
    d.require_target("sm_90");
    if (d.take("mma_async")) return decode_multiply(d);
    const bool fence = d.take("fence");
    const bool commit = !fence && d.take("commit_group");
    const bool wait = !fence && !commit && d.take("wait_group");
    if (!fence && !commit && !wait) d.refuse("its form is .mma_async, .fence, .commit_group or .wait_group");
    if (!d.take("sync") || !d.take("aligned")) d.refuse(".sync.aligned is missing");
    d.finish_modifiers();
    d.expect_operands(wait ? 1 : 0);
    if (wait) {
        const std::int64_t pending = d.immediate(0);
        if (pending < 0 || pending > 7) d.refuse_operand(d.operand(0), "the number of pending groups is 0 to 7");
        d.result.immediate = static_cast<std::uint64_t>(pending);
    }
    d.result.execute = fence ? &execute_fence : commit ? &execute_commit : &execute_wait;
}

constexpr std::array kOpcodes{
    Opcode{"wgmma", decode_wgmma},
};

}  // namespace

std::span<const Opcode> wgmma_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
