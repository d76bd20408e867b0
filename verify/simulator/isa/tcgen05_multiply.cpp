/// tcgen05.mma (PTX ISA 9.7.16.10.9.1), tcgen05.cp and tcgen05.shift (9.7.16.9): each active lane issues its own.
#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "verify/simulator/engines/tcgen05.h"
#include "verify/simulator/isa/tcgen05.h"
#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

namespace {

constexpr std::int64_t kMaxScaleExponent = 15;

// Slots: 0 d, 1 a, 2 b, 3 the instruction descriptor, 4 enable-input-d. The list is empty, or the four words of
// disabled lanes. The lower half of the immediate is added to d, the upper to a. Decoded::target is scale-input-d.
constexpr std::uint8_t kAInTensorMemory = 1;

Outcome execute_multiply(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[0], i.slots[1], i.slots[2], i.slots[3], i.slots[4]);
    for (const Slot slot : i.list) warp.require(i, slot);
    const LaneMask add_d = warp.predicate(i.slots[4]) ^ i.flip;
    const bool a_in_tensor_memory = (i.flags & kAInTensorMemory) != 0;
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        Tcgen05Multiply operands{
            .d = warp.lanes_of<std::uint32_t>(i.slots[0])[lane] + static_cast<std::uint32_t>(i.immediate),
            .a_in_tensor_memory = a_in_tensor_memory,
            .b = warp.lanes_of<std::uint64_t>(i.slots[2])[lane],
            .instruction_descriptor = warp.lanes_of<std::uint32_t>(i.slots[3])[lane],
            .add_d = (add_d >> lane & 1) != 0,
            .scale_exponent = i.target};
        operands.a = a_in_tensor_memory ? warp.lanes_of<std::uint32_t>(i.slots[1])[lane] +
                                              static_cast<std::uint32_t>(i.immediate >> 32)
                                        : warp.lanes_of<std::uint64_t>(i.slots[1])[lane];
        for (std::size_t word = 0; word < i.list.size(); ++word) {
            operands.disabled_lanes[word] = warp.lanes_of<std::uint32_t>(i.list[word])[lane];
        }
        warp.cta().tcgen05().multiply({&warp, &i, lane}, operands);
    }
    return Outcome::next;
}

/// Slots: 0 the address, 1 the matrix descriptor. The immediate is added to the address, `target` is the shape.
Outcome execute_copy(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[0], i.slots[1]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        warp.cta().tcgen05().copy(
            {&warp, &i, lane}, static_cast<SharedCopyShape>(i.target),
            warp.lanes_of<std::uint32_t>(i.slots[0])[lane] + static_cast<std::uint32_t>(i.immediate),
            warp.lanes_of<std::uint64_t>(i.slots[1])[lane]);
    }
    return Outcome::next;
}

/// Slot 0 is the address, to which the immediate is added.
Outcome execute_shift(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[0]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        warp.cta().tcgen05().shift({&warp, &i, lane}, warp.lanes_of<std::uint32_t>(i.slots[0])[lane] +
                                                          static_cast<std::uint32_t>(i.immediate));
    }
    return Outcome::next;
}

/// Takes .kind::f16 and refuses the others.
void take_kind(Decoder& d) {
    if (d.take("kind::f16")) return;
    for (const auto modifier : d.instruction().modifiers) {
        if (!modifier.starts_with("kind::")) continue;
        for (const std::string_view known :
             {"kind::tf32", "kind::f8f6f4", "kind::i8", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}) {
            if (modifier == known) d.refuse(fmt::format(".{} is not simulated, only .kind::f16", modifier));
        }
        d.refuse(fmt::format(".{} does not exist; for f16 and bf16 the kind is .kind::f16", modifier));
    }
    d.refuse(".kind::f16 is missing");
}

/// Takes what says how A may be kept for the next product, which changes nothing here.
void take_collector(Decoder& d) {
    const auto usage = d.take_one<std::string_view>({{"collector::a::fill", "fill"},
                                                     {"collector::a::use", "use"},
                                                     {"collector::a::lastuse", "lastuse"},
                                                     {"collector::a::discard", "discard"}});
    if (!d.take("ashift")) return;
    if (usage == "fill" || usage == "use") d.refuse(".ashift excludes .collector::a::fill and .collector::a::use");
    d.refuse(".ashift is not simulated: no source says what the first row of A becomes");
}

/// The four words of disabled lanes.
void add_disabled_lanes(Decoder& d, const ptx::Operand& operand) {
    constexpr std::size_t kWords = 4;
    if (operand.elements.size() != kWords) {
        d.refuse_operand(operand, fmt::format("{} words of disabled lanes, but .cta_group::1 takes {}",
                                              operand.elements.size(), kWords));
    }
    std::vector<Slot> words;
    for (const auto& element : operand.elements) words.push_back(d.source(element, Type::b32));
    d.result.list = d.builder().keep(words);
}

}  // namespace

void decode_tcgen05_multiply(Decoder& d) {
    if (d.take("ws")) d.refuse(".ws, products with stationary weights, is not simulated");
    if (d.take("sp")) d.refuse(".sp, sparse products, is not simulated");
    take_cta_group(d);
    if (d.take("block_scale")) d.refuse(".block_scale is not simulated, only .kind::f16");
    take_kind(d);
    take_collector(d);
    d.finish_modifiers();
    d.expect_operands(5, 7);
    const TensorMemoryOperand to = tensor_memory_operand(d, d.operand(0));
    d.result.slots[0] = to.base;
    d.result.immediate = to.offset;
    if (d.operand(1).kind == ptx::Operand::Kind::address) {
        const TensorMemoryOperand a = tensor_memory_operand(d, d.operand(1));
        d.result.slots[1] = a.base;
        d.result.immediate |= std::uint64_t{a.offset} << 32;
        d.result.flags |= kAInTensorMemory;
    } else {
        d.result.slots[1] = d.source(1, Type::b64);
    }
    d.result.slots[2] = d.source(2, Type::b64);
    d.result.slots[3] = d.source(3, Type::b32);
    std::size_t next = 4;
    if (d.operand(next).kind == ptx::Operand::Kind::vector) add_disabled_lanes(d, d.operand(next++));
    d.expect_operands(next + 1, next + 2);
    const auto add_d = d.predicate_source(next);
    d.result.slots[4] = add_d.slot;
    d.result.flip = add_d.flip;
    if (d.operands() == next + 2) {
        const std::int64_t exponent = d.immediate(next + 1);
        if (exponent < 0 || exponent > kMaxScaleExponent) {
            d.refuse_operand(d.operand(next + 1), fmt::format("scale-input-d is 0 to {}", kMaxScaleExponent));
        }
        d.result.target = static_cast<std::uint32_t>(exponent);
    }
    d.result.execute = &execute_multiply;
}

void decode_tcgen05_copy(Decoder& d) {
    take_cta_group(d);
    if (d.take("4x256b")) d.refuse(".4x256b is not simulated: no source says which rows it copies to which lanes");
    for (const std::string_view format : {"b8x16", "b6x16_p32", "b4x16_p64"}) {
        if (d.take(format)) d.refuse(fmt::format("decompression, .{}, is not simulated", format));
    }
    const auto shape = d.take_one<std::string_view>(
        {{"128x256b", "128x256b"}, {"128x128b", "128x128b"}, {"64x128b", "64x128b"}, {"32x128b", "32x128b"}});
    const auto multicast = d.take_one<std::string_view>(
        {{"warpx2::02_13", "warpx2::02_13"}, {"warpx2::01_23", "warpx2::01_23"}, {"warpx4", "warpx4"}});
    d.finish_modifiers();
    const auto parsed = parse_shared_copy(shape.value_or(""), multicast.value_or(""));
    if (!parsed) {
        d.refuse(
            "its shape is .128x256b, .128x128b, .64x128b.warpx2::02_13, .64x128b.warpx2::01_23 or .32x128b.warpx4");
    }
    d.expect_operands(2);
    const TensorMemoryOperand to = tensor_memory_operand(d, d.operand(0));
    d.result.slots[0] = to.base;
    d.result.immediate = to.offset;
    d.result.slots[1] = d.source(1, Type::b64);
    d.result.target = static_cast<std::uint32_t>(*parsed);
    d.result.execute = &execute_copy;
}

void decode_tcgen05_shift(Decoder& d) {
    take_cta_group(d);
    if (!d.take("down")) d.refuse(".down is missing");
    d.finish_modifiers();
    d.expect_operands(1);
    const TensorMemoryOperand first = tensor_memory_operand(d, d.operand(0));
    d.result.slots[0] = first.base;
    d.result.immediate = first.offset;
    d.result.execute = &execute_shift;
}

}  // namespace block_attention::simulator
