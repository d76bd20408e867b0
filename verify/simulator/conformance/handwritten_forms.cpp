/// Kernels that no product of modifiers describes.
#include <algorithm>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

/// Values that pass from one thread to another, by the barriers that order them.
void add_exchanges(FormList& list) {
    list.add_code("bar.sync@neighbour", "w", "w",
                  "st.shared.b32 [%cell], %a; bar.sync 0; xor.b32 %xw0, %thread, 37; sub.u32 %xw0, %xw0, %thread; "
                  "mad.lo.u32 %xw0, %xw0, 32, %cell; ld.shared.b32 %d0, [%xw0];");
    list.add_code(
        "bar.warp.sync@neighbour", "w", "w",
        "st.shared.b32 [%cell], %a; bar.warp.sync -1; xor.b32 %xw0, %thread, 13; sub.u32 %xw0, %xw0, %thread; "
        "mad.lo.u32 %xw0, %xw0, 32, %cell; ld.shared.b32 %d0, [%xw0];");
    // Half of the CTA's warps produce and go on, the others wait.
    list.add_code("bar.arrive@producer", "w", "w",
                  "st.shared.b32 [%cell], %a; mov.b32 %d0, %a; setp.lt.u32 %xp0, %thread, 128; "
                  "@%xp0 bar.arrive 3, 256; @!%xp0 bar.sync 3, 256; sub.u32 %xw0, %cell, 4096; "
                  "@!%xp0 ld.shared.b32 %d0, [%xw0];");
}

/// Lanes that take different ways and meet again.
void add_divergence(FormList& list) {
    list.add_code("bra@loop", "w", "w",
                  "{ and.b32 %xw0, %a, 31; mov.b32 %d0, 0; again: add.u32 %d0, %d0, %a; setp.eq.u32 %xp0, %xw0, 0; "
                  "sub.u32 %xw0, %xw0, 1; "
                  "@!%xp0 bra again; }");
    list.add_code("bra@warp-vote-after-divergence", "w", "wp",
                  "{ mov.b32 %d0, 5; @%b bra odd; mul.lo.u32 %d0, %a, 3; bra.uni both; odd: xor.b32 %d0, %a, 9; both: "
                  "bar.warp.sync -1; "
                  "redux.sync.add.u32 %xw0, %d0, -1; add.u32 %d0, %d0, %xw0; }");
    list.add_code("activemask.b32@guarded", "w", "p", "mov.b32 %d0, 0; @%a activemask.b32 %d0;");
}

/// Threads that end early leave their results as the host filled them.
void add_exits(FormList& list) {
    for (const auto* opcode : {"exit", "ret"}) {
        list.add_code(std::string(opcode) + "@guarded", "w", "wp", "mov.b32 %d0, %a; @%b " + std::string(opcode) + ";");
    }
}

/// What has no result must not change any.
void add_without_result(FormList& list) {
    Choices texts{"membar.cta",
                  "membar.gl",
                  "membar.sys",
                  "nanosleep.u32 20",
                  "griddepcontrol.wait",
                  "griddepcontrol.launch_dependents",
                  "prefetch.global.L1 [%own]",
                  "prefetch.global.L2 [%own]",
                  "prefetch.L1 [%own]",
                  "prefetch.L2 [%own]",
                  "prefetchu.L1 [%own]",
                  "prefetch.global.L2::evict_last [%own]",
                  "prefetch.global.L2::evict_normal [%own]",
                  "bar.warp.sync 0xffffffff",
                  "bar.sync 0",
                  "bar.sync 1, 256",
                  "bar.cta.sync 0",
                  "barrier.sync 0",
                  "barrier.sync 5, 256",
                  "barrier.cta.sync.aligned 2",
                  "barrier.sync.aligned 15",
                  "pmevent 1",
                  "mov.u32 %xw0, %clock",
                  "mov.u64 %xl0, %clock64",
                  "mov.u64 %xl0, %globaltimer",
                  "mov.u32 %xw0, %smid",
                  "mov.u64 %xl0, %gridid",
                  "mov.u32 %xw0, %warpid",
                  "createpolicy.fractional.L2::evict_last.b64 %xl0, 1.0",
                  "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %xl0, 0.5",
                  "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %xl0, [%own], 128, 256"};
    for (const auto& fence : combine(
             {{"fence"}, {"", ".sc", ".acq_rel", ".acquire", ".release"}, {"", ".cta", ".cluster", ".gpu", ".sys"}})) {
        texts.push_back(fence);
    }
    for (const auto* proxy : {"alias", "async", "async.global", "async.shared::cta", "async.shared::cluster"}) {
        texts.push_back(std::string("fence.proxy.") + proxy);
    }
    for (const auto& text : texts) {
        std::string name = text;
        std::ranges::replace(name, ' ', '_');
        list.add_code(name, "w", "w", text + "; mov.b32 %d0, %a;");
    }
}

}  // namespace

void add_handwritten_forms(FormList& list) {
    list.group("hand-written kernels");
    add_exchanges(list);
    add_divergence(list);
    add_exits(list);
    list.group("without a result");
    add_without_result(list);
}

}  // namespace block_attention::conformance
