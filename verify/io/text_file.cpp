#include "verify/io/text_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "verify/usage_error.h"

namespace block_attention {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path) {
    if (std::error_code ignored; fs::is_directory(path, ignored)) {
        throw UsageError(fmt::format("{}: is a directory", path.string()));
    }
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw UsageError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    std::ostringstream text;
    if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
    if (stream.bad() || !text) throw UsageError(fmt::format("{}: cannot be read to its end", path.string()));
    return std::move(text).str();
}

}  // namespace block_attention
