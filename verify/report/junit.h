#pragma once
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "verify/result.h"

namespace block_attention {

/// Writes the report as JUnit XML: a test case per result, named by case, in the class "stage.device". Refusals are
/// skipped tests. A result of several schedules has their number as a property.
void write_junit(std::ostream& stream, std::span<const Result> results);

/// Text for an XML attribute or element: markup escaped, characters that XML 1.0 can't hold replaced by '?'.
std::string escape_xml(std::string_view text);

}  // namespace block_attention
