#pragma once
#include <nlohmann/json_fwd.hpp>

#include "verify/device/finding.h"

namespace block_attention {

/// A finding as every report writes it.
nlohmann::ordered_json to_json(const Finding& finding);

}  // namespace block_attention
