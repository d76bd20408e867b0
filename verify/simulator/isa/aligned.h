#pragma once
#include <fmt/format.h>

#include "verify/simulator/isa/program.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

/// An instruction with .sync.aligned: `body` is executed once all lanes of the warp that have not exited are at this
/// instruction, and they are then the active ones. It needs all 32 lanes: if some have exited, or never existed, that
/// is a finding, and `body` sees a warp with fewer active lanes.
template <void (*body)(Warp&, const Decoded&)>
Outcome execute_aligned(Warp& warp, const Decoded& i) {
    if (warp.active() == kAllLanes) [[likely]] {
        body(warp, i);
        return Outcome::next;
    }
    const LaneMask arriving = warp.active();
    warp.detach(i);
    const LaneMask here = warp.meet(i, arriving, warp.alive(), {0, 0, Wait::lanes, kAllLanes}, false, Wait::none);
    if (here == 0) return Outcome::reschedule;
    warp.set_active(here);
    if (here != kAllLanes) {
        warp.report(Rule::membermask, i, here, [&] {
            return fmt::format("only {} of warp {} execute it, but .aligned asks for all {} lanes of the warp",
                               to_string_lanes(here), warp.index(), kWarpSize);
        });
    }
    body(warp, i);
    warp.resume(here, warp.index_of(i) + 1);
    return Outcome::reschedule;
}

}  // namespace block_attention::simulator
