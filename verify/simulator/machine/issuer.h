#pragma once
#include <functional>
#include <string>

#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

/// The thread that started an asynchronous operation, for what is found later.
struct Issuer {
    Warp* warp = nullptr;
    const Decoded* instruction = nullptr;
    unsigned lane = 0;

    [[nodiscard]] Cta& cta() const { return warp->cta(); }
    void report(Rule rule, const std::function<std::string()>& describe) const {
        warp->report(rule, *instruction, LaneMask{1} << lane, describe);
    }
};

}  // namespace block_attention::simulator
