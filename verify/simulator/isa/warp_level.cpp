/// Instructions by which the lanes of a warp exchange values (PTX ISA 9.7.9.6, 9.7.13.7 and following).
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/machine/poison.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

namespace {

/// Executes `body` once for every member mask among the active lanes (slots[4]), as soon as all lanes of the mask that
/// have not exited are at this instruction; the mask's lanes are then the active ones.
template <void (*body)(Warp&, const Decoded&)>
Outcome execute_together(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[4]);
    const auto* masks = warp.lanes_of<std::uint32_t>(i.slots[4]);
    const LaneMask arriving = warp.active();
    const auto same_mask = [&](LaneMask mask, LaneMask among) {
        LaneMask group = 0;
        for (unsigned lane = 0; lane < kWarpSize; ++lane) group |= LaneMask{masks[lane] == mask} << lane;
        return group & among;
    };
    const LaneMask first = masks[warp.first_lane()];
    if ((first & warp.alive()) == arriving && same_mask(first, arriving) == arriving) {
        body(warp, i);
        return Outcome::next;
    }
    warp.detach(i);
    for (LaneMask left = arriving; left != 0;) {
        const LaneMask mask = masks[std::countr_zero(left)];
        const LaneMask group = same_mask(mask, left);
        left &= ~group;
        if ((group & ~mask) != 0) {
            warp.report(Rule::membermask, i, group & ~mask, [&] {
                return fmt::format("{} of warp {} executes it, but is not in the member mask {:#010x}",
                                   to_string_lanes(group & ~mask), warp.index(), mask);
            });
        }
        const LaneMask required = (mask | group) & warp.alive();
        const LaneMask here = warp.meet(i, group, required, {0, 0, Wait::lanes, mask}, false, Wait::none);
        if (here == 0) continue;
        warp.set_active(here);
        body(warp, i);
        warp.resume(here, warp.index_of(i) + 1);
    }
    return Outcome::reschedule;
}

// shfl.sync: slots are the value, the source, b, c, the member mask; slot list[0] is the predicate.

enum class Shuffle : std::uint8_t { up, down, butterfly, index };

/// The lane that a lane reads from, and whether that is within its segment (PTX ISA 9.7.9.6).
struct ShuffleSource {
    unsigned lane = 0;
    bool valid = false;
};

template <Shuffle mode>
ShuffleSource shuffle_source(unsigned lane, std::uint32_t b, std::uint32_t c) {
    const unsigned distance = b & 31;
    const unsigned clamp = c & 31;
    const unsigned segment = c >> 8 & 31;
    const unsigned most = (lane & segment) | (clamp & ~segment);
    const unsigned least = lane & segment;
    ShuffleSource source;
    switch (mode) {
        case Shuffle::up:
            source = {lane - distance, static_cast<int>(lane) - static_cast<int>(distance) >= static_cast<int>(most)};
            break;
        case Shuffle::down:
            source = {lane + distance, lane + distance <= most};
            break;
        case Shuffle::butterfly:
            source = {lane ^ distance, (lane ^ distance) <= most};
            break;
        case Shuffle::index:
            source.lane = least | (distance & ~segment);
            source.valid = source.lane <= most;
            break;
    }
    return source.valid ? source : ShuffleSource{lane, false};
}

template <Shuffle mode>
void shuffle(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1], i.slots[2], i.slots[3]);
    const auto* from = warp.lanes_of<std::uint32_t>(i.slots[1]);
    const auto* b = warp.lanes_of<std::uint32_t>(i.slots[2]);
    const auto* c = warp.lanes_of<std::uint32_t>(i.slots[3]);
    alignas(64) Lanes<std::uint32_t> result;
    LaneMask valid = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const ShuffleSource source = shuffle_source<mode>(lane, b[lane], c[lane]);
        valid |= LaneMask{source.valid} << lane;
        result[lane] = from[source.lane];
        if ((warp.active() >> lane & 1) != 0 && (warp.active() >> source.lane & 1) == 0) {
            warp.report(Rule::membermask, i, LaneMask{1} << lane, [&] {
                return fmt::format("lane {} of warp {} takes the value of lane {}, which does not take part", lane,
                                   warp.index(), source.lane);
            });
            result[lane] = static_cast<std::uint32_t>(kPoison);
        }
    }
    warp.commit(i.slots[0], result);
    warp.commit_predicate(i.list[0], valid);
}

void decode_shuffle(Decoder& d) {
    const auto execute = d.take_one<Execute>({{"up", &execute_together<shuffle<Shuffle::up>>},
                                              {"down", &execute_together<shuffle<Shuffle::down>>},
                                              {"bfly", &execute_together<shuffle<Shuffle::butterfly>>},
                                              {"idx", &execute_together<shuffle<Shuffle::index>>}});
    if (!d.take("sync") || !execute || d.take_type() != Type::b32) {
        d.refuse("its form is shfl.sync.{up|down|bfly|idx}.b32");
    }
    d.finish_modifiers();
    d.expect_operands(5);
    const ptx::Operand& destination = d.operand(0);
    const bool pair = destination.kind == ptx::Operand::Kind::pair;
    d.result.slots[0] = d.destination(pair ? destination.elements.at(0) : destination, Type::b32);
    const Slot predicate = pair ? d.destination(destination.elements.at(1), Type::pred) : d.builder().scratch(1);
    d.result.list = d.builder().keep(std::array{predicate});
    for (std::size_t k = 1; k <= 4; ++k) d.result.slots[k] = d.source(k, Type::b32);
    d.result.execute = *execute;
}

// vote.sync: slots are the result, the predicate, -, -, the member mask.

enum class Vote : std::uint8_t { all, any, uniform, ballot };

template <Vote mode>
void vote(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const LaneMask votes = (warp.predicate(i.slots[1]) ^ i.flip) & warp.active();
    if constexpr (mode == Vote::ballot) {
        Lanes<std::uint32_t> result;
        result.fill(votes);
        warp.commit(i.slots[0], result);
    } else {
        const bool all = votes == warp.active();
        const bool holds = mode == Vote::all ? all : mode == Vote::any ? votes != 0 : all || votes == 0;
        warp.commit_predicate(i.slots[0], holds ? kAllLanes : 0);
    }
}

void decode_vote(Decoder& d) {
    if (!d.take("sync")) d.refuse("only the form vote.sync is simulated");
    const auto mode =
        d.take_one<Vote>({{"all", Vote::all}, {"any", Vote::any}, {"uni", Vote::uniform}, {"ballot", Vote::ballot}});
    if (!mode) d.refuse("the mode is missing: .all, .any, .uni or .ballot");
    const Type type = d.take_type();
    if (type != (*mode == Vote::ballot ? Type::b32 : Type::pred)) d.refuse("its type is .pred, and .b32 for .ballot");
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots[0] = d.destination(0, type);
    const auto predicate = d.predicate_source(1);
    d.result.slots[1] = predicate.slot;
    d.result.flip = predicate.flip;
    d.result.slots[4] = d.source(2, Type::b32);
    switch (*mode) {
        case Vote::all:
            d.result.execute = &execute_together<vote<Vote::all>>;
            break;
        case Vote::any:
            d.result.execute = &execute_together<vote<Vote::any>>;
            break;
        case Vote::uniform:
            d.result.execute = &execute_together<vote<Vote::uniform>>;
            break;
        case Vote::ballot:
            d.result.execute = &execute_together<vote<Vote::ballot>>;
            break;
    }
}

// match.sync: slots are the result, the value, -, the predicate, the member mask.

/// The lanes that have the same value as this one.
template <typename T>
void match_any(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* from = warp.lanes_of<T>(i.slots[1]);
    alignas(64) Lanes<std::uint32_t> result;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        LaneMask same = 0;
        for (unsigned other = 0; other < kWarpSize; ++other) same |= LaneMask{from[other] == from[lane]} << other;
        result[lane] = same & warp.active();
    }
    warp.commit(i.slots[0], result);
}

/// All lanes if they have one value, else none.
template <typename T>
void match_all(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* from = warp.lanes_of<T>(i.slots[1]);
    LaneMask same = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) same |= LaneMask{from[lane] == from[warp.first_lane()]} << lane;
    const bool all = (warp.active() & ~same) == 0;
    Lanes<std::uint32_t> result;
    result.fill(all ? warp.active() : 0);
    warp.commit(i.slots[0], result);
    warp.commit_predicate(i.slots[3], all ? kAllLanes : 0);
}

void decode_match(Decoder& d) {
    const auto all = d.take_one<bool>({{"any", false}, {"all", true}});
    if (!d.take("sync") || !all) d.refuse("its form is match.any.sync or match.all.sync");
    const Type type = d.take_type();
    if (type != Type::b32 && type != Type::b64) d.refuse("its type is .b32 or .b64");
    d.finish_modifiers();
    d.expect_operands(3);
    const ptx::Operand& destination = d.operand(0);
    const bool pair = *all && destination.kind == ptx::Operand::Kind::pair;
    d.result.slots[0] = d.destination(pair ? destination.elements.at(0) : destination, Type::b32);
    d.result.slots[3] = pair ? d.destination(destination.elements.at(1), Type::pred) : d.builder().scratch(1);
    d.result.slots[1] = d.source(1, type);
    d.result.slots[4] = d.source(2, Type::b32);
    if (*all) {
        d.result.execute = type == Type::b64 ? &execute_together<match_all<std::uint64_t>>
                                             : &execute_together<match_all<std::uint32_t>>;
    } else {
        d.result.execute = type == Type::b64 ? &execute_together<match_any<std::uint64_t>>
                                             : &execute_together<match_any<std::uint32_t>>;
    }
}

// redux.sync: slots are the result, the source, -, -, the member mask.

struct Sum {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    }
};

struct Minimum {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? a : b;
    }
};

struct Maximum {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? b : a;
    }
};

struct And {
    template <typename T>
    static T apply(T a, T b) {
        return a & b;
    }
};

struct Or {
    template <typename T>
    static T apply(T a, T b) {
        return a | b;
    }
};

struct Xor {
    template <typename T>
    static T apply(T a, T b) {
        return a ^ b;
    }
};

template <typename Operation, typename T>
void reduce(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    const auto* from = warp.lanes_of<std::uint32_t>(i.slots[1]);
    T reduced = static_cast<T>(from[warp.first_lane()]);
    for (LaneMask left = warp.active() & (warp.active() - 1); left != 0; left &= left - 1) {
        reduced = Operation::apply(reduced, static_cast<T>(from[std::countr_zero(left)]));
    }
    Lanes<std::uint32_t> result;
    result.fill(static_cast<std::uint32_t>(reduced));
    warp.commit(i.slots[0], result);
}

template <typename Operation>
Execute choose_reduction(Type type) {
    switch (type) {
        case Type::u32:
            return &execute_together<reduce<Operation, std::uint32_t>>;
        case Type::s32:
            return &execute_together<reduce<Operation, std::int32_t>>;
        default:
            return nullptr;
    }
}

template <typename Operation>
Execute choose_bit_reduction(Type type) {
    return type == Type::b32 ? &execute_together<reduce<Operation, std::uint32_t>> : nullptr;
}

void decode_reduction(Decoder& d) {
    if (!d.take("sync")) d.refuse("its form is redux.sync");
    using Choose = Execute (*)(Type);
    const auto choose = d.take_one<Choose>({{"add", &choose_reduction<Sum>},
                                            {"min", &choose_reduction<Minimum>},
                                            {"max", &choose_reduction<Maximum>},
                                            {"and", &choose_bit_reduction<And>},
                                            {"or", &choose_bit_reduction<Or>},
                                            {"xor", &choose_bit_reduction<Xor>}});
    if (!choose) d.refuse("the operation is missing, such as .add");
    const Type type = d.take_type();
    d.result.execute = d.required((*choose)(type), type);
    d.finish_modifiers();
    d.expect_operands(3);
    d.result.slots[0] = d.destination(0, type);
    d.result.slots[1] = d.source(1, type);
    d.result.slots[4] = d.source(2, Type::b32);
}

/// elect.sync: slot 0 is the elected lane's number, slot 3 the predicate, slot 4 the member mask. The lowest lane of
/// the mask is elected (measured on H200).
void elect(Warp& warp, const Decoded& i) {
    Lanes<std::uint32_t> result;
    result.fill(warp.first_lane());
    warp.commit(i.slots[0], result);
    warp.commit_predicate(i.slots[3], warp.active() & (~warp.active() + 1));
}

void decode_elect(Decoder& d) {
    if (!d.take("sync")) d.refuse("its form is elect.sync");
    d.finish_modifiers();
    d.expect_operands(2);
    const ptx::Operand& destination = d.operand(0);
    if (destination.kind != ptx::Operand::Kind::pair) d.refuse_operand(destination, "a pair d|p is needed");
    d.result.slots[0] = d.destination(destination.elements.at(0), Type::b32);
    d.result.slots[3] = d.destination(destination.elements.at(1), Type::pred);
    d.result.slots[4] = d.source(1, Type::b32);
    d.result.execute = &execute_together<elect>;
}

Outcome execute_active_mask(Warp& warp, const Decoded& i) {
    Lanes<std::uint32_t> result;
    result.fill(warp.active());
    warp.commit(i.slots[0], result);
    return Outcome::next;
}

void decode_active_mask(Decoder& d) {
    if (d.take_type() != Type::b32) d.refuse("its type is .b32");
    d.finish_modifiers();
    d.expect_operands(1);
    d.result.slots[0] = d.destination(0, Type::b32);
    d.result.execute = &execute_active_mask;
}

constexpr std::array kOpcodes{
    Opcode{"match", decode_match},     Opcode{"shfl", decode_shuffle}, Opcode{"vote", decode_vote},
    Opcode{"redux", decode_reduction}, Opcode{"elect", decode_elect},  Opcode{"activemask", decode_active_mask},
};

}  // namespace

std::span<const Opcode> warp_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
