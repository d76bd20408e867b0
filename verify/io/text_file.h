#pragma once
#include <filesystem>
#include <string>

namespace block_attention {

/// The content of a file or a pipe. Throws UsageError that begins with the path if it can't be read.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace block_attention
