/// cp.async.bulk.tensor in its .tile mode (PTX ISA 9.7.9.27.1): which bytes go where is in layout/tensor_copy.h.
#include "verify/simulator/layout/tensor_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <variant>

#include "verify/simulator/engines/copy.h"
#include "verify/simulator/isa/async_operands.h"
#include "verify/simulator/isa/bulk_copy.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/memory_access.h"

namespace block_attention::simulator {

namespace {

// Loads: address 0 is the destination, 1 the map, 2 the mbarrier object. Stores: 0 the source, 1 the map. The
// coordinates follow in the list; slot 3 is the multicast mask. Decoded::flags:
constexpr std::uint8_t kMulticast = 1;
constexpr std::uint8_t kReduce = 2;  ///< Decoded::target is the operation

/// A tensor map's address is a multiple of this (CUDA driver API, cuTensorMapEncodeTiled).
constexpr std::uint64_t kMapAlignment = 64;

/// Copies of one lane: what they need of the machine.
class TensorCopy {
  public:
    TensorCopy(Warp& warp, const Decoded& instruction, unsigned lane, std::uint32_t rank, unsigned addresses)
        : warp_(warp), instruction_(instruction), lane_(lane) {
        for (std::uint32_t c = 0; c < rank; ++c) {
            const Slot slot = instruction.list[2 * addresses + c];
            coordinates_[c] = static_cast<std::int32_t>(warp.lanes_of<std::uint32_t>(slot)[lane]);
        }
        read_map(rank);
    }

    /// Nothing if something is wrong, which has been reported.
    [[nodiscard]] const std::optional<TensorMap>& map() const { return map_; }
    [[nodiscard]] TensorBox box() const { return TensorBox(*map_); }
    /// Whether the hardware accepts the copy; otherwise it ends the kernel.
    bool check(std::uint32_t shared_offset, TensorCopyDirection direction) {
        const std::string trap = check_tensor_copy(*map_, coordinates_, shared_offset, direction);
        if (trap.empty()) return true;
        fail(Rule::copy, trap);
        warp_.cta().stop();
        return false;
    }
    /// The copy's runs; those at unmapped addresses are reported and left out.
    std::vector<CopyRun> runs(std::uint32_t shared_offset, TensorCopyDirection direction) {
        std::vector<CopyRun> result;
        for_each_run(*map_, coordinates_, shared_offset, direction, [&](const TensorRun& run) {
            if (!run.inside) {
                if (direction == TensorCopyDirection::load) result.push_back({nullptr, nullptr, run.shared, run.bytes});
                return;
            }
            if (!buffer_ || run.global - buffer_begin_ > buffer_bytes_ ||
                run.bytes > buffer_bytes_ - (run.global - buffer_begin_)) {
                if (!find_buffer(run)) return;
            }
            const std::uint64_t at = run.global - buffer_begin_;
            result.push_back({buffer_->data.data() + at,
                              buffer_->shadow.data() == nullptr ? nullptr : buffer_->shadow.data() + at, run.shared,
                              run.bytes});
        });
        return result;
    }

  private:
    void fail(Rule rule, const std::string& message) {
        warp_.report(rule, instruction_, LaneMask{1} << lane_, [&] { return message; });
    }

    void read_map(std::uint32_t rank) {
        const auto bytes = find_async(warp_, instruction_, lane_,
                                      {"the tensor map", std::nullopt, async_address(warp_, instruction_, 1, lane_),
                                       kTensorMapBytes, kMapAlignment});
        if (!bytes) return;
        auto decoded = decode_tensor_map(std::span<const std::byte, kTensorMapBytes>(bytes->data, kTensorMapBytes));
        if (const auto* fault = std::get_if<std::string>(&decoded)) return fail(Rule::tensor_map, *fault);
        const auto& map = std::get<TensorMap>(decoded);
        if (map.rank != rank) {
            return fail(Rule::tensor_map,
                        fmt::format("the tensor map has rank {}, but the copy has {} coordinates", map.rank, rank));
        }
        if (const std::string reason = unsupported(map); !reason.empty()) {
            fail(Rule::tensor_map, "not simulated: " + reason);
            return warp_.cta().stop();
        }
        map_ = map;
    }

    bool find_buffer(const TensorRun& run) {
        buffer_ = nullptr;
        const Allocation* found = warp_.cta().grid().memory->find(run.global);
        if (found != nullptr && !found->freed && run.global - found->address < found->bytes &&
            run.bytes <= found->bytes - (run.global - found->address)) {
            buffer_ = found;
            buffer_begin_ = found->address;
            buffer_bytes_ = found->bytes;
            return true;
        }
        fail(Rule::out_of_bounds, fmt::format("the tensor map reaches {} bytes at {:#x}, {}", run.bytes, run.global,
                                              warp_.cta().grid().memory->describe(run.global)));
        return false;
    }

    Warp& warp_;
    const Decoded& instruction_;
    unsigned lane_;
    TensorCoordinates coordinates_{};
    std::optional<TensorMap> map_;
    const Allocation* buffer_ = nullptr;
    std::uint64_t buffer_begin_ = 0;
    std::uint64_t buffer_bytes_ = 0;
};

void require_operands(Warp& warp, const Decoded& i, unsigned addresses) {
    require_addresses(warp, i, addresses);
    for (std::size_t c = 2 * addresses; c < i.list.size(); ++c) warp.require(i, i.list[c]);
}

Outcome execute_load(Warp& warp, const Decoded& i) {
    require_operands(warp, i, 3);
    warp.require(i, i.slots[3]);
    const auto rank = static_cast<std::uint32_t>(i.list.size()) - 6;
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        TensorCopy tensor(warp, i, lane, rank, 3);
        if (!tensor.map()) continue;
        // The alignment is checked with the trap that it leads to.
        const auto destination =
            find_shared(warp, i, lane, async_address(warp, i, 0, lane),
                        {"the destination of the copy", tensor.box().shared_bytes(), 1, false, i.cluster});
        const auto barrier = find_shared(warp, i, lane, async_address(warp, i, 2, lane),
                                         {"the mbarrier object", 8, 8, false, i.cluster});
        if (!destination || !barrier || !tensor.check(destination->offset, TensorCopyDirection::load)) continue;
        CopyToShared copy{.issuer = {&warp, &i, lane},
                          .runs = tensor.runs(destination->offset, TensorCopyDirection::load),
                          .fill = fill_pattern(*tensor.map()),
                          .conversion = tensor.map()->type,
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

Outcome execute_store(Warp& warp, const Decoded& i) {
    require_operands(warp, i, 2);
    const auto rank = static_cast<std::uint32_t>(i.list.size()) - 4;
    for (LaneMask left = warp.active(); left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        TensorCopy tensor(warp, i, lane, rank, 2);
        if (!tensor.map()) continue;
        const auto source = find_shared(warp, i, lane, async_address(warp, i, 0, lane),
                                        {"the source of the copy", tensor.box().shared_bytes()});
        if (!source || !tensor.check(source->offset, TensorCopyDirection::store)) continue;
        CopyFromShared copy{.issuer = {&warp, &i, lane},
                            .runs = tensor.runs(source->offset, TensorCopyDirection::store),
                            .source = source->cta,
                            .reduction = {},
                            .group = warp.cta().bulk_groups(warp, lane).open(),
                            .barrier = {}};
        if ((i.flags & kReduce) != 0) {
            copy.reduction = Reduction{static_cast<ReductionOperation>(i.target), tensor.map()->type};
            if (!is_reducible(*copy.reduction)) {
                warp.report(Rule::copy, i, LaneMask{1} << lane, [&] {
                    return fmt::format("the reduction does not exist for the tensor map's type {}",
                                       name_of(tensor.map()->type));
                });
                continue;
            }
        }
        copy.group->start();
        start(std::move(copy));
    }
    return Outcome::next;
}

Outcome execute_nothing(Warp&, const Decoded&) { return Outcome::next; }

/// Takes .1d to .5d, and refuses the modes other than .tile.
std::uint32_t take_rank(Decoder& d) {
    const auto rank = d.take_one<std::uint32_t>({{"1d", 1}, {"2d", 2}, {"3d", 3}, {"4d", 4}, {"5d", 5}});
    if (!rank) d.refuse("the rank is missing: .1d to .5d");
    for (const auto modifier : d.instruction().modifiers) {
        if (modifier.starts_with("im2col") || modifier.starts_with("tile::")) {
            d.refuse(fmt::format("the mode .{} is not simulated, only .tile", modifier));
        }
        if (modifier == "cta_group::2") d.refuse("pairs of CTAs, .cta_group::2, are not simulated");
    }
    d.take("tile");
    d.take("cta_group::1");
    return *rank;
}

/// Adds the tensor map's address, and returns the slots of the coordinates.
std::vector<Slot> add_tensor(Decoder& d, AsyncOperands& operands, const ptx::Operand& operand, std::uint32_t rank) {
    if (operand.kind != ptx::Operand::Kind::tensor_address) {
        d.refuse_operand(operand, "a tensor map with coordinates is needed: [map, {c0, c1}]");
    }
    const ptx::Operand& coordinates = operand.elements.at(1);
    const auto& elements = coordinates.kind == ptx::Operand::Kind::vector ? coordinates.elements : operand.elements;
    std::vector<Slot> slots;
    for (std::size_t c = coordinates.kind == ptx::Operand::Kind::vector ? 0 : 1; c < elements.size(); ++c) {
        slots.push_back(d.source(elements[c], Type::s32));
    }
    if (slots.size() != rank) {
        d.refuse_operand(operand, fmt::format("{} coordinates, but the rank is {}", slots.size(), rank));
    }
    operands.add_address(operand, std::nullopt);
    return slots;
}

void decode_load(Decoder& d, std::uint32_t rank, std::string_view to) {
    if (!d.take("mbarrier::complete_tx::bytes")) {
        d.refuse("its completion mechanism is .mbarrier::complete_tx::bytes");
    }
    const bool multicast = d.take("multicast::cluster");
    if (multicast && to != "shared::cluster") d.refuse("a multicast goes to .shared::cluster");
    const bool hint = d.take("L2::cache_hint");
    d.finish_modifiers();
    d.expect_operands(3 + (multicast ? 1U : 0U) + (hint ? 1U : 0U));
    AsyncOperands operands(d);
    operands.add_address(d.operand(0), ptx::Space::shared);
    const auto coordinates = add_tensor(d, operands, d.operand(1), rank);
    operands.add_address(d.operand(2), ptx::Space::shared);
    for (const Slot slot : coordinates) operands.add(slot);
    operands.finish();
    d.result.slots[3] = multicast ? d.source(3, Type::b16) : d.builder().constant(0, 16);
    if (hint) d.source(d.operands() - 1, Type::b64);
    d.result.cluster = to == "shared::cluster";
    d.result.flags = multicast ? kMulticast : 0;
    d.result.execute = &execute_load;
}

void decode_store(Decoder& d, std::uint32_t rank, std::uint8_t flags) {
    if (!d.take("bulk_group")) d.refuse("its completion mechanism is .bulk_group");
    const bool hint = d.take("L2::cache_hint");
    d.finish_modifiers();
    d.expect_operands(hint ? 3 : 2);
    AsyncOperands operands(d);
    operands.add_address(d.operand(1), ptx::Space::shared);
    for (const Slot slot : add_tensor(d, operands, d.operand(0), rank)) operands.add(slot);
    operands.finish();
    if (hint) d.source(2, Type::b64);
    d.result.flags = flags;
    d.result.execute = &execute_store;
}

}  // namespace

void decode_tensor_copy(Decoder& d) {
    const std::uint32_t rank = take_rank(d);
    const auto [to, from] = take_copy_spaces(d);
    if (from == "global" && to != "global") return decode_load(d, rank, to);
    if (to == "global" && from == "shared::cta") return decode_store(d, rank, 0);
    d.refuse("it copies from .global to .shared::cta or .shared::cluster, or from .shared::cta to .global");
}

void decode_tensor_reduction(Decoder& d) {
    const std::uint32_t rank = take_rank(d);
    const auto [to, from] = take_copy_spaces(d);
    if (to != "global" || from != "shared::cta") d.refuse("it reduces from .shared::cta to .global");
    d.result.target = take_reduction_operation(d);
    decode_store(d, rank, kReduce);
}

void decode_tensor_prefetch(Decoder& d) {
    const std::uint32_t rank = take_rank(d);
    if (!d.take("L2") || !d.take("global")) d.refuse("it prefetches from .global to .L2");
    const bool hint = d.take("L2::cache_hint");
    d.finish_modifiers();
    d.expect_operands(hint ? 2 : 1);
    AsyncOperands operands(d);
    add_tensor(d, operands, d.operand(0), rank);
    if (hint) d.source(1, Type::b64);
    d.result.execute = &execute_nothing;
}

}  // namespace block_attention::simulator
