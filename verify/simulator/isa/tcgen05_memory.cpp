/// tcgen05.ld, tcgen05.st and tcgen05.wait (PTX ISA 9.7.16.8): a warp between its registers and Tensor Memory.
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/simulator/engines/tcgen05.h"
#include "verify/simulator/isa/tcgen05.h"
#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

namespace {

// Slot 0 is the address, to which the immediate is added. The list holds the registers. Decoded::target is .num,
// Decoded::needed the split offset, Decoded::bytes the shape; flags:
constexpr std::uint8_t kPacked = 1;

RegisterAccess access_of(const Decoded& i) {
    return {.shape = static_cast<RegisterShape>(i.bytes),
            .repeat = i.target,
            .packed = (i.flags & kPacked) != 0,
            .split_offset = static_cast<std::int32_t>(i.needed)};
}

std::uint32_t address_of(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[0]);
    return uniform_operand(warp, i, warp.lanes_of<std::uint32_t>(i.slots[0]), "the address in Tensor Memory") +
           static_cast<std::uint32_t>(i.immediate);
}

Outcome execute_load(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (!whole_warp(warp, i)) return Outcome::next;
    warp.cta().tcgen05().load({&warp, &i, 0}, access_of(i), address_of(warp, i), i.list);
    return Outcome::next;
}

Outcome execute_store(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    if (!whole_warp(warp, i)) return Outcome::next;
    for (const Slot slot : i.list) warp.require(i, slot);
    warp.cta().tcgen05().store({&warp, &i, 0}, access_of(i), address_of(warp, i), i.list);
    return Outcome::next;
}

Outcome execute_wait_for_loads(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    return warp.cta().tcgen05().loads_complete(warp) ? Outcome::next : warp.park(i, Wait::engine, 0);
}

Outcome execute_wait_for_stores(Warp& warp, const Decoded& i) {
    if (!warp.converged(i)) return Outcome::reschedule;
    return warp.cta().tcgen05().stores_complete(warp) ? Outcome::next : warp.park(i, Wait::engine, 0);
}

/// Takes .shape and .num.
RegisterAccess take_access(Decoder& d) {
    const auto shape = d.take_one<RegisterShape>({{"32x32b", RegisterShape::s32x32b},
                                                  {"16x64b", RegisterShape::s16x64b},
                                                  {"16x128b", RegisterShape::s16x128b},
                                                  {"16x256b", RegisterShape::s16x256b},
                                                  {"16x32bx2", RegisterShape::s16x32bx2}});
    if (!shape) d.refuse("the shape is missing: .32x32b, .16x64b, .16x128b, .16x256b or .16x32bx2");
    const auto repeat = d.take_one<std::uint32_t>(
        {{"x1", 1}, {"x2", 2}, {"x4", 4}, {"x8", 8}, {"x16", 16}, {"x32", 32}, {"x64", 64}, {"x128", 128}});
    const std::uint32_t most = 128 / registers_per_repeat(*shape);
    if (!repeat || *repeat > most) {
        d.refuse(fmt::format("the number of repetitions is .x1, .x2, .x4 and so on up to .x{}", most));
    }
    return {.shape = *shape, .repeat = *repeat};
}

/// Takes the operands: the address, the split offset of .16x32bx2, and the registers at `registers`.
void take_operands(Decoder& d, RegisterAccess access, std::size_t address, std::size_t registers) {
    const TensorMemoryOperand place = tensor_memory_operand(d, d.operand(address));
    d.result.slots[0] = place.base;
    d.result.immediate = place.offset;
    if (access.shape == RegisterShape::s16x32bx2) {
        const std::int64_t offset = d.immediate(address + 1);
        if (offset < std::numeric_limits<std::int32_t>::min() || offset > std::numeric_limits<std::int32_t>::max()) {
            d.refuse_operand(d.operand(address + 1), "the offset of the second half has 32 bits");
        }
        access.split_offset = static_cast<std::int32_t>(offset);
    }
    const ptx::Operand& vector = d.operand(registers);
    const std::uint32_t count = registers_of(access);
    if (vector.kind != ptx::Operand::Kind::vector || vector.elements.size() != count) {
        d.refuse_operand(vector, fmt::format("a vector of {} registers in braces is needed", count));
    }
    std::vector<Slot> slots;
    for (const auto& element : vector.elements) {
        slots.push_back(registers == 0 ? d.destination(element, Type::b32) : d.source(element, Type::b32));
    }
    d.result.list = d.builder().keep(slots);
    d.result.bytes = static_cast<std::uint16_t>(access.shape);
    d.result.target = access.repeat;
    d.result.needed = static_cast<std::uint32_t>(access.split_offset);
    if (access.packed) d.result.flags |= kPacked;
}

/// Takes everything but the operands. `packing` is "pack::16b" or "unpack::16b".
RegisterAccess take_modifiers(Decoder& d, std::string_view packing) {
    take_aligned(d);
    RegisterAccess access = take_access(d);
    access.packed = d.take(packing);
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    return access;
}

}  // namespace

void decode_tcgen05_load(Decoder& d) {
    if (d.take("red")) d.refuse(".red does not exist on sm_100a");
    const RegisterAccess access = take_modifiers(d, "pack::16b");
    d.expect_operands(access.shape == RegisterShape::s16x32bx2 ? 3 : 2);
    take_operands(d, access, 1, 0);
    d.result.execute = &execute_load;
}

void decode_tcgen05_store(Decoder& d) {
    const RegisterAccess access = take_modifiers(d, "unpack::16b");
    const bool split = access.shape == RegisterShape::s16x32bx2;
    d.expect_operands(split ? 3 : 2);
    take_operands(d, access, 0, split ? 2 : 1);
    d.result.execute = &execute_store;
}

void decode_tcgen05_wait(Decoder& d, bool loads) {
    take_aligned(d);
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = loads ? &execute_wait_for_loads : &execute_wait_for_stores;
}

}  // namespace block_attention::simulator
