#include "verify/io/npy.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "verify/usage_error.h"

namespace block_attention {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kPreamble = 8;  // magic and version
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxHeader = std::size_t{1} << 20;

struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
};

/// Reads the header, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderReader {
  public:
    HeaderReader(std::string_view text, const fs::path& path) : text_(text), path_(path) {}

    Header read() {
        Header header;
        unsigned seen = 0;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = read_string();
            expect(':');
            seen |= read_entry(key, header);
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (seen != 7 || !text_.empty()) fail("it must hold descr, fortran_order and shape, and nothing else");
        return header;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw UsageError(fmt::format("{}: the header is malformed: {}", path_.string(), what));
    }

    /// Returns a bit of its own for each key.
    unsigned read_entry(std::string_view key, Header& header) {
        if (key == "descr") {
            if (peek() == '[') {
                throw UsageError(fmt::format(
                    "{}: structured arrays are not supported; save each field as an array of its own", path_.string()));
            }
            header.descr = read_string();
            return 1;
        }
        if (key == "fortran_order") {
            header.fortran_order = accept_word("True");
            if (!header.fortran_order && !accept_word("False")) fail("fortran_order is neither True nor False");
            return 2;
        }
        if (key != "shape") fail(fmt::format("the key '{}' is unknown", key));
        expect('(');
        while (!accept(')')) {
            header.shape.push_back(read_extent());
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return 4;
    }

    std::int64_t read_extent() {
        skip_blanks();
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
        if (error != std::errc{} || value < 0) fail("the shape holds something that is no size");
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        accept_word("L");  // Python 2 wrote long integers so
        return value;
    }

    std::string_view read_string() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') fail("a text in quotes is missing");
        const std::size_t end = text_.find(quote, 1);
        if (end == std::string_view::npos) fail("a text is not closed");
        const std::string_view value = text_.substr(1, end - 1);
        text_.remove_prefix(end + 1);
        skip_blanks();
        return value;
    }

    void skip_blanks() {
        const std::size_t begin = text_.find_first_not_of(" \t\n");
        text_.remove_prefix(begin == std::string_view::npos ? text_.size() : begin);
    }
    /// 0 at the end.
    char peek() {
        skip_blanks();
        return text_.empty() ? '\0' : text_.front();
    }
    bool accept(char c) {
        if (peek() != c) return false;
        text_.remove_prefix(1);
        skip_blanks();
        return true;
    }
    bool accept_word(std::string_view word) {
        skip_blanks();
        if (!text_.starts_with(word)) return false;
        text_.remove_prefix(word.size());
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(fmt::format("'{}' is missing", c));
    }

    std::string_view text_;
    const fs::path& path_;
};

/// A type as NumPy spells it.
struct Spelling {
    std::string_view kind_and_size;
    ElementType type;
};
constexpr std::array<Spelling, 13> kSpellings{{{"u1", ElementType::u8},
                                               {"u2", ElementType::u16},
                                               {"u4", ElementType::u32},
                                               {"u8", ElementType::u64},
                                               {"i1", ElementType::s8},
                                               {"i2", ElementType::s16},
                                               {"i4", ElementType::s32},
                                               {"i8", ElementType::s64},
                                               {"f2", ElementType::f16},
                                               {"V2", ElementType::bf16},
                                               {"f4", ElementType::f32},
                                               {"f8", ElementType::f64},
                                               {"b1", ElementType::u8}}};

ElementType type_of(const std::string& descr, const fs::path& path) {
    const std::string_view text = descr;
    const bool has_order = !text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '=');
    const std::string_view kind_and_size = text.substr(has_order ? 1 : 0);
    for (const Spelling& spelling : kSpellings) {
        if (spelling.kind_and_size != kind_and_size) continue;
        if (text[0] == '>' && size_of(spelling.type) > 1) {
            throw UsageError(
                fmt::format("{}: big-endian elements ('{}') are not supported; save "
                            "a.astype(a.dtype.newbyteorder('<'))",
                            path.string(), descr));
        }
        return spelling.type;
    }
    throw UsageError(
        fmt::format("{}: elements of type '{}' are not supported: there are integers of 1 to 8 bytes, f2, f4, f8, and "
                    "V2 for bfloat16",
                    path.string(), descr));
}

/// Reads exactly that many bytes.
void read_all(std::istream& stream, std::span<std::byte> to, const fs::path& path, std::string_view what) {
    // std::byte may alias char.
    stream.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    if (!stream) throw UsageError(fmt::format("{}: the file ends inside the {}", path.string(), what));
}

Header read_header(std::istream& stream, const fs::path& path) {
    std::array<std::byte, kPreamble> preamble{};
    stream.read(reinterpret_cast<char*>(preamble.data()), kPreamble);
    if (!stream || std::memcmp(preamble.data(), kMagic.data(), kMagic.size()) != 0) {
        throw UsageError(fmt::format("{}: not a .npy file: it doesn't begin with \\x93NUMPY", path.string()));
    }
    const auto version = std::to_integer<unsigned>(preamble[6]);
    if (version < 1 || version > 3) {
        throw UsageError(fmt::format("{}: format version {}.{} is not supported: there are 1.0, 2.0 and 3.0",
                                     path.string(), version, std::to_integer<unsigned>(preamble[7])));
    }
    std::array<std::byte, 4> length{};
    read_all(stream, std::span(length).first(version == 1 ? 2 : 4), path, "header");
    std::size_t size = 0;
    for (std::size_t i = 0; i < length.size(); ++i) size |= std::to_integer<std::size_t>(length[i]) << (8 * i);
    if (size > kMaxHeader) {
        throw UsageError(
            fmt::format("{}: a header of {} bytes; an array's has at most a few thousand", path.string(), size));
    }
    std::string text(size, '\0');
    read_all(stream, std::as_writable_bytes(std::span(text)), path, "header");
    return HeaderReader(text, path).read();
}

const Spelling& spelling_of(ElementType type) { return kSpellings[static_cast<std::size_t>(type)]; }

}  // namespace

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
    std::int64_t count = 1;
    bool empty = false;
    for (const std::int64_t extent : shape) {
        empty = empty || extent == 0;
        if (extent != 0 && count > std::numeric_limits<std::int64_t>::max() / extent) return std::nullopt;
        if (extent != 0) count *= extent;
    }
    return empty ? 0 : count;
}

std::string describe_array(ElementType type, std::span<const std::int64_t> shape) {
    return fmt::format("{}[{}]", name_of(type), fmt::join(shape, ", "));
}

NpyArray read_npy(const fs::path& path) {
    if (std::error_code ignored; fs::is_directory(path, ignored)) {
        throw UsageError(fmt::format("{}: is a directory", path.string()));
    }
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw UsageError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    Header header = read_header(stream, path);
    NpyArray array{.type = type_of(header.descr, path), .shape = std::move(header.shape), .bytes = {}};
    const auto count = element_count(array.shape);
    // In memory both orders are the same if at most one extent is more than 1.
    std::size_t wide = 0;
    for (const std::int64_t extent : array.shape) wide += extent > 1 ? 1 : 0;
    if (header.fortran_order && wide > 1 && count != 0) {
        throw UsageError(
            fmt::format("{}: Fortran order is not supported; save numpy.ascontiguousarray(a)", path.string()));
    }
    const std::int64_t begin = stream.tellg();
    stream.seekg(0, std::ios::end);
    const std::int64_t present = static_cast<std::int64_t>(stream.tellg()) - begin;
    const auto size = static_cast<std::int64_t>(size_of(array.type));
    if (!count || *count != present / size || present % size != 0) {
        throw UsageError(fmt::format("{}: {} bytes of elements, which is not what {} takes", path.string(), present,
                                     describe_array(array.type, array.shape)));
    }
    stream.seekg(begin);
    array.bytes.resize(static_cast<std::size_t>(present));
    read_all(stream, array.bytes, path, "elements");
    return array;
}

void write_npy(std::ostream& stream, ElementType type, std::span<const std::int64_t> shape,
               std::span<const std::byte> bytes) {
    std::string header =
        fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", size_of(type) == 1 ? '|' : '<',
                    spelling_of(type).kind_and_size, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
    const std::size_t unpadded = kPreamble + 2 + header.size() + 1;
    header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
    header += '\n';
    const std::array<char, 4> version_and_length{1, 0, static_cast<char>(header.size() & 0xFF),
                                                 static_cast<char>(header.size() >> 8)};
    stream << kMagic;
    stream.write(version_and_length.data(), version_and_length.size());
    stream << header;
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace block_attention
