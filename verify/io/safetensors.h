#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace block_attention {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
    std::string dtype;  ///< "F16", "BF16", "F32", "I64", ...
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;  ///< bytes in the file's data
    std::int64_t end = 0;

    [[nodiscard]] std::int64_t elements() const;
    [[nodiscard]] std::int64_t bytes() const { return end - begin; }
};

/// "[2, 4, 128]".
std::string shape_text(std::span<const std::int64_t> shape);

/// A file in the safetensors format: 8 bytes with the header's length (little-endian), a JSON header, the tensors' data
/// (row-major, little-endian). Everything that the header claims is checked when it is opened, so reading a tensor can
/// only fail with the disk.
class SafetensorsFile {
  public:
    /// Throws UsageError that names the file and its first fault.
    explicit SafetensorsFile(const std::filesystem::path& path);

    /// The tensor of that name, or null.
    [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;
    /// The tensor of that name. Throws UsageError that lists what there is.
    [[nodiscard]] const SafetensorsEntry& at(std::string_view name) const;
    [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Reads a tensor's bytes; `to` has their number.
    void read(const SafetensorsEntry& entry, std::span<std::byte> to);
    /// Reads a tensor of integers (I32, I64). Throws UsageError for any other type.
    std::vector<std::int64_t> read_integers(std::string_view name);
    /// Reads a tensor with one floating-point number (F16, BF16, F32, F64). Throws UsageError for anything else.
    double read_number(std::string_view name);

  private:
    [[noreturn]] void fail(std::string_view fault) const;
    void parse_header(const std::string& header, std::int64_t data_bytes);
    void check_layout(std::int64_t data_bytes) const;

    std::filesystem::path path_;
    std::ifstream stream_;
    std::int64_t data_begin_ = 0;
    std::map<std::string, SafetensorsEntry, std::less<>> entries_;
    std::map<std::string, std::string, std::less<>> metadata_;
};

/// A tensor to write.
struct NamedTensor {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
};

/// Writes tensors in the safetensors format, data aligned to 8 bytes.
void write_safetensors(std::ostream& stream, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace block_attention
