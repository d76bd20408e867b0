/// Control flow (PTX ISA 9.7.12), fences (9.7.13.4) and what has no effect here.
#include "verify/simulator/isa/control.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/machine/cta.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

namespace {

Outcome execute_branch(Warp& warp, const Decoded& i) {
    if (warp.all_active()) return Outcome::jump;
    warp.diverge(i, i.target);
    return Outcome::reschedule;
}

void decode_branch(Decoder& d) {
    d.take("uni");
    d.finish_modifiers();
    d.expect_operands(1);
    if (d.operand(0).kind != ptx::Operand::Kind::label) d.refuse_operand(d.operand(0), "a label is needed");
    d.result.target = d.operand(0).index;
    d.result.execute = &execute_branch;
}

Outcome execute_exit(Warp& warp, const Decoded& i) {
    warp.exit(i);
    return Outcome::reschedule;
}

/// A kernel's ret is its exit.
void decode_exit(Decoder& d) {
    d.take("uni");
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_exit;
}

Outcome execute_trap(Warp& warp, const Decoded& i) {
    warp.report(Rule::trap, i, warp.active(), [] { return "the kernel executes a trap, which ends it"; });
    warp.cta().stop();
    return Outcome::reschedule;
}

void decode_trap(Decoder& d) {
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_trap;
}

/// Every CTA sees one coherent memory; the host's own must be ordered as the kernel asks.
Outcome execute_fence(Warp&, const Decoded&) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Outcome::next;
}

/// fence.proxy, without .proxy: the proxies meet in one memory here, so that a missing fence has no effect on data.
void decode_proxy_fence(Decoder& d) {
    if (d.take("tensormap::generic")) {
        const bool acquire = d.take("acquire");
        if (!acquire && !d.take("release")) d.refuse("its semantics are .acquire or .release");
        if (!d.take_one<int>({{"cta", 0}, {"cluster", 1}, {"gpu", 2}, {"sys", 3}})) d.refuse("its scope is missing");
        d.finish_modifiers();
        d.expect_operands(acquire ? 2 : 0);
        if (acquire) {
            d.address(0, std::nullopt, 1);
            if (d.immediate(1) != 128) d.refuse_operand(d.operand(1), "the size of a tensor map is 128");
        }
    } else {
        if (!d.take("async") && !d.take("alias")) {
            d.refuse("the proxy is .async, .alias or .tensormap::generic");
        }
        d.take_one<int>({{"global", 0}, {"shared::cta", 1}, {"shared::cluster", 2}});
        d.finish_modifiers();
        d.expect_operands(0);
    }
    d.result.execute = &execute_fence;
}

void decode_fence(Decoder& d) {
    if (d.take("proxy")) return decode_proxy_fence(d);
    if (d.take("mbarrier_init")) {
        if (!d.take("release") || !d.take("cluster")) d.refuse("its form is fence.mbarrier_init.release.cluster");
    } else if (d.take("acquire")) {
        if (d.take("sync_restrict::shared::cluster") && !d.take("cluster")) d.refuse("its scope is .cluster");
    } else if (d.take("release")) {
        if (d.take("sync_restrict::shared::cta") && !d.take("cluster")) d.refuse("its scope is .cluster");
    } else {
        d.take_one<int>({{"sc", 0}, {"acq_rel", 1}});
    }
    ignore_scope(d);
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_fence;
}

void decode_membar(Decoder& d) {
    d.ignore({"cta", "gl", "sys"});
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_fence;
}

Outcome execute_nothing(Warp&, const Decoded&) { return Outcome::next; }

void decode_nanosleep(Decoder& d) {
    if (d.take_type() != Type::u32) d.refuse("its type is .u32");
    d.finish_modifiers();
    d.expect_operands(1);
    d.source(0, Type::u32);
    d.result.execute = &execute_nothing;
}

/// Without programmatic launches there is nothing to wait for and nobody to release.
void decode_grid_dependency(Decoder& d) {
    if (!d.take("wait") && !d.take("launch_dependents")) d.refuse("its form is .wait or .launch_dependents");
    d.finish_modifiers();
    d.expect_operands(0);
    d.result.execute = &execute_nothing;
}

void refuse_call(Decoder& d) {
    for (std::size_t i = 0; i < d.operands(); ++i) {
        if (d.operand(i).kind != ptx::Operand::Kind::function) continue;
        d.refuse("calls are not simulated: " + std::string(d.operand(i).name) +
                 "; compile device functions inline, and without printf and assert");
    }
    d.refuse("calls are not simulated");
}

constexpr std::array kOpcodes{
    Opcode{"bra", decode_branch},
    Opcode{"ret", decode_exit},
    Opcode{"exit", decode_exit},
    Opcode{"trap", decode_trap},
    Opcode{"fence", decode_fence},
    Opcode{"membar", decode_membar},
    Opcode{"call", refuse_call},
    Opcode{"nanosleep", decode_nanosleep},
    Opcode{"griddepcontrol", decode_grid_dependency},
};

}  // namespace

Decoded final_exit() {
    Decoded exit;
    exit.execute = &execute_exit;
    return exit;
}

std::span<const Opcode> control_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
