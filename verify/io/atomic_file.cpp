#include "verify/io/atomic_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "verify/usage_error.h"

namespace block_attention {

namespace fs = std::filesystem;

AtomicFile::AtomicFile(const fs::path& path) : path_(path) {
    std::error_code ignored;
    const bool exists = fs::exists(path, ignored);
    if (fs::is_directory(path, ignored)) {
        throw UsageError(fmt::format("cannot write {}: it is a directory", path.string()));
    }
    if (exists && !fs::is_regular_file(path, ignored)) {
        stream_.open(path_, std::ios::binary);
    } else {
        if (exists) path_ = fs::canonical(path, ignored);  // or a symbolic link would be replaced
        temporary_ = fmt::format("{}.partial.{}", path_.string(), getpid());
        stream_.open(temporary_, std::ios::binary | std::ios::trunc);
    }
    if (!stream_) throw UsageError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

AtomicFile::~AtomicFile() {
    if (temporary_.empty()) return;
    std::error_code ignored;
    fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
    stream_.close();
    if (!stream_) throw UsageError(fmt::format("cannot write all of {}: {}", path_.string(), std::strerror(errno)));
    if (temporary_.empty()) return;
    std::error_code failure;
    fs::rename(temporary_, path_, failure);
    if (failure) throw UsageError(fmt::format("cannot write {}: {}", path_.string(), failure.message()));
    temporary_.clear();
}

}  // namespace block_attention
