#pragma once
#include <span>
#include <string>
#include <vector>

#include "reference/stage.h"
#include "verify/cases/case.h"
#include "verify/devices.h"

namespace block_attention {

/// What --list prints: cases, stages with what each doesn't serve and why, devices, and the words of a case's layout
/// and fill.
std::string listing(const std::vector<Case>& cases, std::span<const Stage* const> stages, const DeviceSet& devices);

/// What a device is, without its name: "sm_100a, 148 multiprocessors".
std::string describe(const NamedDevice& device);

}  // namespace block_attention
