#pragma once
#include <filesystem>
#include <fstream>

namespace block_attention {

/// A file that appears complete or not at all: written beside its place, then renamed. A target that exists and is no
/// regular file, such as /dev/stdout, is written in place.
class AtomicFile {
  public:
    /// Throws UsageError if the file can't be written there.
    explicit AtomicFile(const std::filesystem::path& path);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    [[nodiscard]] std::ostream& stream() { return stream_; }
    /// Gives the file its name. Throws UsageError if not everything could be written, on a full disk say.
    void commit();

  private:
    std::filesystem::path path_;
    std::filesystem::path temporary_;  ///< empty if written in place
    std::ofstream stream_;
};

}  // namespace block_attention
