#pragma once
#include <span>
#include <string>
#include <string_view>

namespace block_attention {

/// The smallest number of edits that turns one text into the other: a character is inserted, deleted or replaced, or
/// two neighbours are swapped.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// What to say after "there is no case foo": "; did you mean fob or fod?" if some names are near, else "; there are"
/// and all of them.
std::string suggestion(std::string_view unknown, std::span<const std::string> names);

}  // namespace block_attention
