/// Clusters: barrier.cluster (PTX ISA 9.7.13.3), and setmaxnreg (9.7.19.5).
#include "verify/simulator/isa/cluster.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "verify/simulator/machine/cluster.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint8_t kAligned = 1;

Outcome execute_arrive(Warp& warp, const Decoded& i) {
    if ((i.flags & kAligned) != 0 && !warp.converged(i)) return Outcome::reschedule;
    const LaneMask twice = warp.active() & (warp.cluster_arrived() | warp.cluster_complete());
    if (twice != 0) {
        warp.report(Rule::cluster, i, twice,
                    [] { return "a thread arrives at the cluster's barrier again before it has waited there"; });
    }
    const LaneMask arriving = warp.active() & ~twice;
    warp.cluster_arrived() |= arriving;
    if (arriving != 0) warp.cta().cluster().arrive(static_cast<std::uint32_t>(std::popcount(arriving)));
    return Outcome::next;
}

Outcome execute_wait(Warp& warp, const Decoded& i) {
    if ((i.flags & kAligned) != 0 && !warp.converged(i)) return Outcome::reschedule;
    const LaneMask active = warp.active();
    const LaneMask stray = active & ~(warp.cluster_arrived() | warp.cluster_complete());
    if (stray != 0) {
        warp.report(Rule::cluster, i, stray,
                    [] { return "a thread waits at the cluster's barrier without having arrived there"; });
    }
    if ((active & warp.cluster_arrived()) != 0) return warp.park(i, Wait::cluster_barrier, 0);
    warp.cluster_complete() &= ~active;
    return Outcome::next;
}

/// How registers are shared out is no concern of the machine's.
Outcome execute_set_max_registers(Warp& warp, const Decoded& i) {
    return warp.converged(i) ? Outcome::next : Outcome::reschedule;
}

void decode_set_max_registers(Decoder& d) {
    if (!d.take("inc") && !d.take("dec")) d.refuse("its form is .inc or .dec");
    if (!d.take("sync") || !d.take("aligned")) d.refuse(".sync.aligned is missing");
    if (d.take_type() != Type::u32) d.refuse("its type is .u32");
    d.finish_modifiers();
    d.expect_operands(1);
    const std::int64_t count = d.immediate(0);
    if (count < 24 || count > 256 || count % 8 != 0) {
        d.refuse(fmt::format("{} registers: the count is a multiple of 8 from 24 to 256", count));
    }
    d.result.execute = &execute_set_max_registers;
}

constexpr std::array kOpcodes{
    Opcode{"setmaxnreg", decode_set_max_registers},
};

}  // namespace

// .acquire, .release and .relaxed order memory, which the machine keeps coherent anyway.
void decode_cluster_barrier(Decoder& d) {
    const bool arrive = d.take("arrive");
    if (!arrive && !d.take("wait")) d.refuse("its form is .arrive or .wait");
    if (arrive) {
        d.ignore({"release", "relaxed"});
    } else {
        d.ignore({"acquire"});
    }
    d.result.flags = d.take("aligned") ? kAligned : 0;
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = arrive ? &execute_arrive : &execute_wait;
}

std::span<const Opcode> cluster_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
