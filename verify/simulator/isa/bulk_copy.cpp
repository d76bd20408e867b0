#include "verify/simulator/isa/bulk_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "verify/simulator/engines/copy.h"
#include "verify/simulator/isa/async_operands.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/memory_access.h"

namespace block_attention::simulator {

namespace {

/// Addresses and sizes of bulk copies are multiples of this (PTX ISA 9.7.9.25.4.1).
constexpr std::uint32_t kBulkUnit = 16;

// The addresses in the list: 0 the destination, 1 the source, 2 the mbarrier object. Slots: 2 the size, 3 the multicast
// mask. Decoded::flags:
constexpr std::uint8_t kMulticast = 1;
constexpr std::uint8_t kReduce = 2;  ///< Decoded::target is the operation, Decoded::needed the type

std::optional<std::uint32_t> size_of(Warp& warp, const Decoded& i, unsigned lane) {
    const std::uint32_t bytes = warp.lanes_of<std::uint32_t>(i.slots[2])[lane];
    if (bytes % kBulkUnit == 0) return bytes;
    warp.report(Rule::misaligned, i, LaneMask{1} << lane,
                [&] { return fmt::format("a bulk copy of {} bytes, which is no multiple of {}", bytes, kBulkUnit); });
    return std::nullopt;
}

std::optional<SharedPlace> find_bulk_shared(Warp& warp, const Decoded& i, unsigned lane, unsigned which,
                                            std::string_view name, std::uint64_t bytes, bool cluster) {
    return find_shared(warp, i, lane, async_address(warp, i, which, lane), {name, bytes, kBulkUnit, false, cluster});
}

std::optional<SharedPlace> find_barrier(Warp& warp, const Decoded& i, unsigned lane, bool cluster) {
    return find_shared(warp, i, lane, async_address(warp, i, 2, lane), {"the mbarrier object", 8, 8, false, cluster});
}

/// From global memory to shared memory; Decoded::cluster allows another CTA's.
Outcome execute_load(Warp& warp, const Decoded& i) {
    require_addresses(warp, i, 3);
    warp.require(i, i.slots[2], i.slots[3]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto bytes = size_of(warp, i, lane);
        if (!bytes) continue;
        const auto destination = find_bulk_shared(warp, i, lane, 0, "the destination of the copy", *bytes, i.cluster);
        const auto source = find_async(
            warp, i, lane,
            {"the source of the copy", ptx::Space::global, async_address(warp, i, 1, lane), *bytes, kBulkUnit});
        const auto barrier = find_barrier(warp, i, lane, i.cluster);
        if (!destination || !source || !barrier) continue;
        CopyToShared copy{.issuer = {&warp, &i, lane},
                          .runs = {{source->data, source->shadow, destination->offset, *bytes}},
                          .targets = {destination->cta},
                          .barrier = CopyBarrier{barrier->offset},
                          .groups = {}};
        if ((i.flags & kMulticast) != 0) {
            copy.targets = multicast_targets(warp, i, lane, warp.lanes_of<std::uint32_t>(i.slots[3])[lane]);
        } else if (barrier->cta != destination->cta) {
            warp.report(Rule::copy, i, LaneMask{1} << lane, [&] {
                return fmt::format(
                    "the destination is in CTA {} of the cluster and the mbarrier object in CTA {}; they "
                    "must be in the same one",
                    destination->cta->rank(), barrier->cta->rank());
            });
        }
        start(std::move(copy));
    }
    return Outcome::next;
}

std::optional<Reduction> reduction_of(const Decoded& i) {
    if ((i.flags & kReduce) == 0) return std::nullopt;
    return Reduction{static_cast<ReductionOperation>(i.target), static_cast<TensorMapType>(i.needed)};
}

/// From shared memory to global memory.
Outcome execute_store(Warp& warp, const Decoded& i) {
    require_addresses(warp, i, 2);
    warp.require(i, i.slots[2]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto bytes = size_of(warp, i, lane);
        if (!bytes) continue;
        const auto destination = find_async(
            warp, i, lane,
            {"the destination of the copy", ptx::Space::global, async_address(warp, i, 0, lane), *bytes, kBulkUnit});
        const auto source = find_bulk_shared(warp, i, lane, 1, "the source of the copy", *bytes, false);
        if (!destination || !source) continue;
        if (destination->read_only) {
            warp.report(Rule::read_only, i, LaneMask{1} << lane,
                        [] { return "a bulk copy into memory that kernels can only read"; });
            continue;
        }
        CopyFromShared copy{.issuer = {&warp, &i, lane},
                            .runs = {{destination->data, destination->shadow, source->offset, *bytes}},
                            .source = source->cta,
                            .reduction = reduction_of(i),
                            .group = warp.cta().bulk_groups(warp, lane).open(),
                            .barrier = {}};
        copy.group->start();
        start(std::move(copy));
    }
    return Outcome::next;
}

/// From the CTA's shared memory to that of a CTA of the cluster.
Outcome execute_shared_copy(Warp& warp, const Decoded& i) {
    require_addresses(warp, i, 3);
    warp.require(i, i.slots[2]);
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto bytes = size_of(warp, i, lane);
        if (!bytes) continue;
        const auto destination = find_bulk_shared(warp, i, lane, 0, "the destination of the copy", *bytes, true);
        const auto source = find_bulk_shared(warp, i, lane, 1, "the source of the copy", *bytes, false);
        const auto barrier = find_barrier(warp, i, lane, true);
        if (!destination || !source || !barrier) continue;
        if (!i.flags) {
            // What a copy will write is poison until it does.
            std::fill_n(destination->shadow(), *bytes, std::byte{0});
        }
        start(CopyFromShared{.issuer = {&warp, &i, lane},
                             .runs = {{destination->data(), destination->shadow(), source->offset, *bytes}},
                             .source = source->cta,
                             .reduction = reduction_of(i),
                             .group = nullptr,
                             .target = destination->cta,
                             .barrier = CopyBarrier{barrier->offset}});
    }
    return Outcome::next;
}

Outcome execute_commit(Warp& warp, const Decoded&) {
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        warp.cta().bulk_groups(warp, static_cast<unsigned>(std::countr_zero(left))).commit();
    }
    return Outcome::next;
}

/// `immediate` groups may be pending; flag 1: only their reads matter.
Outcome execute_wait(Warp& warp, const Decoded& i) {
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        if (!warp.cta().bulk_groups(warp, lane).done(i.immediate, i.flags != 0)) return warp.park(i, Wait::engine, 0);
    }
    return Outcome::next;
}

Outcome execute_nothing(Warp&, const Decoded&) { return Outcome::next; }

void decode_commit(Decoder& d) {
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_commit;
}

void decode_wait(Decoder& d) {
    d.result.flags = d.take("read") ? 1 : 0;
    d.finish_modifiers();
    d.expect_operands(1);
    const std::int64_t pending = d.immediate(0);
    if (pending < 0) d.refuse_operand(d.operand(0), "the number of groups that may be pending is 0 or more");
    d.result.immediate = static_cast<std::uint64_t>(pending);
    d.result.execute = &execute_wait;
}

void decode_prefetch(Decoder& d) {
    if (d.take("tensor")) return decode_tensor_prefetch(d);
    if (!d.take("L2") || !d.take("global")) d.refuse("it prefetches from .global to .L2");
    const bool hint = d.take("L2::cache_hint");
    d.finish_modifiers();
    d.expect_operands(hint ? 3 : 2);
    d.address(0, ptx::Space::global, 1);
    d.source(1, Type::u32);
    if (hint) d.source(2, Type::b64);
    d.result.execute = &execute_nothing;
}

/// The operands of a copy between two of the three kinds of memory, after its modifiers but for the completion
/// mechanism and hints.
void decode_operands(Decoder& d) {
    const auto [to, from] = take_copy_spaces(d);
    const bool loads = from == "global" && to != "global";
    const bool stores = to == "global" && from == "shared::cta";
    const bool shared = to == "shared::cluster" && from == "shared::cta";
    if (!loads && !stores && !shared) {
        d.refuse(
            "it copies from .global to .shared::cta or .shared::cluster, from .shared::cta to .global, or from "
            ".shared::cta to .shared::cluster");
    }
    const std::uint8_t reduce = d.result.flags;
    if (loads && reduce != 0) d.refuse("a reduction's source is in .shared::cta");
    if (stores ? !d.take("bulk_group") : !d.take("mbarrier::complete_tx::bytes")) {
        d.refuse(stores ? "its completion mechanism is .bulk_group"
                        : "its completion mechanism is .mbarrier::complete_tx::bytes");
    }
    const bool multicast = loads && to == "shared::cluster" && d.take("multicast::cluster");
    const bool hint = !shared && d.take("L2::cache_hint");
    d.finish_modifiers();
    const std::size_t required = stores ? 3 : 4;
    d.expect_operands(required + (multicast ? 1U : 0U) + (hint ? 1U : 0U));
    d.result.cluster = to == "shared::cluster";
    AsyncOperands operands(d);
    operands.add_address(d.operand(0), stores ? ptx::Space::global : ptx::Space::shared);
    operands.add_address(d.operand(1), loads ? ptx::Space::global : ptx::Space::shared);
    d.result.slots[2] = d.source(2, Type::u32);
    if (!stores) operands.add_address(d.operand(3), ptx::Space::shared);
    d.result.slots[3] = multicast ? d.source(4, Type::b16) : d.builder().constant(0, 16);
    if (hint) d.source(d.operands() - 1, Type::b64);
    operands.finish();
    d.result.flags = static_cast<std::uint8_t>(reduce | (multicast ? kMulticast : 0));
    d.result.execute = loads ? &execute_load : stores ? &execute_store : &execute_shared_copy;
}

TensorMapType take_reduction_type(Decoder& d) {
    const Type type = d.take_type();
    switch (type) {
        case Type::f16:
            return TensorMapType::float16;
        case Type::bf16:
            return TensorMapType::bfloat16;
        case Type::f32:
            return TensorMapType::float32;
        case Type::f64:
            return TensorMapType::float64;
        case Type::b32:
        case Type::u32:
            return TensorMapType::uint32;
        case Type::s32:
            return TensorMapType::int32;
        case Type::b64:
        case Type::u64:
            return TensorMapType::uint64;
        case Type::s64:
            return TensorMapType::int64;
        default:
            d.refuse("its type is .f16, .bf16, .f32, .f64, or an integer of 32 or 64 bits");
    }
}

}  // namespace

std::uint8_t take_reduction_operation(Decoder& d) {
    const auto operation = d.take_one<ReductionOperation>({{"add", ReductionOperation::add},
                                                           {"min", ReductionOperation::min},
                                                           {"max", ReductionOperation::max},
                                                           {"inc", ReductionOperation::inc},
                                                           {"dec", ReductionOperation::dec},
                                                           {"and", ReductionOperation::bit_and},
                                                           {"or", ReductionOperation::bit_or},
                                                           {"xor", ReductionOperation::bit_xor}});
    if (!operation) d.refuse("the operation is missing, such as .add");
    return static_cast<std::uint8_t>(*operation);
}

void decode_bulk(Decoder& d) {
    if (d.take("prefetch")) return decode_prefetch(d);
    if (d.take("tensor")) return decode_tensor_copy(d);
    if (d.take("commit_group")) return decode_commit(d);
    if (d.take("wait_group")) return decode_wait(d);
    d.result.flags = 0;
    decode_operands(d);
}

void decode_bulk_reduction(Decoder& d) {
    if (d.take("tensor")) return decode_tensor_reduction(d);
    const std::uint8_t operation = take_reduction_operation(d);
    d.take("noftz");
    const TensorMapType type = take_reduction_type(d);
    if (!is_reducible({static_cast<ReductionOperation>(operation), type})) {
        d.refuse("the operation does not exist for this type");
    }
    d.result.target = operation;
    d.result.needed = static_cast<std::uint32_t>(type);
    d.result.flags = kReduce;
    decode_operands(d);
}

}  // namespace block_attention::simulator
