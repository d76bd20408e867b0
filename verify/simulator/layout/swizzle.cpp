#include "verify/simulator/layout/swizzle.h"

namespace block_attention::simulator {

std::string_view name_of(SwizzleMode mode) {
    switch (mode) {
        case SwizzleMode::none:
            return "none";
        case SwizzleMode::b32:
            return "32B";
        case SwizzleMode::b64:
            return "64B";
        case SwizzleMode::b128:
            return "128B";
        case SwizzleMode::b128_atom_32:
            return "128B with 32-byte atoms";
        case SwizzleMode::b128_atom_32_flip_8:
            return "128B with 32-byte atoms and 8-byte flip";
        case SwizzleMode::b128_atom_64:
            return "128B with 64-byte atoms";
    }
    return "unknown";
}

}  // namespace block_attention::simulator
