#include "verify/io/npy.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "verify/io/temporary_folder.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

/// A file of that version with the header as given, padded as NumPy pads it.
std::string make_file(char version, std::string header, const std::string& elements) {
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    header.append((64 - (8 + length_bytes + header.size() + 1) % 64) % 64, ' ');
    header += '\n';
    std::string file = "\x93NUMPY";
    file += version;
    file += '\0';
    for (std::size_t i = 0; i < length_bytes; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return file + header + elements;
}

NpyArray read(const std::string& content) {
    const TemporaryFolder folder;
    write_file(folder / "a.npy", content);
    return read_npy(folder / "a.npy");
}

/// What reading the content complains of, without the path.
std::string fault_of(const std::string& content) {
    const TemporaryFolder folder;
    const std::string path = folder / "a.npy";
    write_file(path, content);
    try {
        read_npy(path);
    } catch (const UsageError& error) {
        const std::string message = error.what();
        REQUIRE(message.starts_with(path + ": "));
        return message.substr(path.size() + 2);
    }
    return "";
}

TEST_CASE("what is written is read, for every type and rank") {
    for (std::size_t i = 0; i < element_type_names().size(); ++i) {
        const auto type = static_cast<ElementType>(i);
        for (const std::vector<std::int64_t>& shape :
             std::vector<std::vector<std::int64_t>>{{}, {5}, {2, 3}, {0, 7}, {2, 1, 3, 1}}) {
            CAPTURE(describe_array(type, shape));
            std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(shape).value()) * size_of(type));
            for (std::size_t byte = 0; byte < bytes.size(); ++byte) bytes[byte] = static_cast<std::byte>(byte * 37);
            std::ostringstream stream;
            write_npy(stream, type, shape, bytes);
            CHECK((stream.str().size() - bytes.size()) % 64 == 0);
            const NpyArray array = read(stream.str());
            CHECK(array.type == type);
            CHECK(array.shape == shape);
            CHECK(array.bytes == bytes);
        }
    }
}

TEST_CASE("a file is byte for byte what NumPy 1.26 writes") {
    // numpy.save(f, numpy.array([1, -2], dtype='<i2'))
    const std::array<std::int16_t, 2> values{1, -2};
    const std::array<std::int64_t, 1> shape{2};
    std::ostringstream stream;
    write_npy(stream, ElementType::s16, shape, std::as_bytes(std::span(values)));
    const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
    std::string expected{"\x93NUMPY\x01\x00\x76\x00", 10};
    expected += header + std::string(128 - 10 - header.size() - 1, ' ') + "\n";
    expected += std::string{"\x01\x00\xFE\xFF", 4};
    CHECK(stream.str() == expected);
}

TEST_CASE("all versions, either quote, any order of keys and any spacing are read") {
    const std::string elements(12, 'x');
    for (const char version : {'\x01', '\x02', '\x03'}) {
        const NpyArray array =
            read(make_file(version, R"({"shape":( 1 ,3 ), 'fortran_order':False , "descr" : '<f4'})", elements));
        CHECK(array.type == ElementType::f32);
        CHECK(array.shape == std::vector<std::int64_t>{1, 3});
    }
    // Fortran order makes no difference where at most one extent is more than 1.
    CHECK(read(make_file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (12, 1), }", elements)).shape.size() ==
          2);
    CHECK(read(make_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (12L,), }", elements)).type ==
          ElementType::u8);
    CHECK(read(make_file(1, "{'descr': '|V2', 'fortran_order': False, 'shape': (6,), }", elements)).type ==
          ElementType::bf16);
}

TEST_CASE("what cannot be read is refused with its reason") {
    const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    const auto fault_of_header = [](const std::string& header) { return fault_of(make_file(1, header, "12345678")); };
    CHECK(fault_of(make_file(1, good, "12345678")).empty());
    CHECK(fault_of("") == "not a .npy file: it doesn't begin with \\x93NUMPY");
    CHECK(fault_of("PK\x03\x04 a zip file, .npz say") == "not a .npy file: it doesn't begin with \\x93NUMPY");
    CHECK(fault_of(make_file(4, good, "12345678")) ==
          "format version 4.0 is not supported: there are 1.0, 2.0 and 3.0");
    CHECK(fault_of(make_file(1, good, "").substr(0, 60)) == "the file ends inside the header");
    CHECK(fault_of(std::string{"\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12}) ==
          "a header of 4294967295 bytes; an array's has at most a few thousand");
    CHECK(fault_of(make_file(1, good, "1234567")) == "7 bytes of elements, which is not what f32[2] takes");
    CHECK(fault_of(make_file(1, good, "123456789")) == "9 bytes of elements, which is not what f32[2] takes");
    CHECK(fault_of_header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }") ==
          "big-endian elements ('>f4') are not supported; save a.astype(a.dtype.newbyteorder('<'))");
    CHECK(fault_of_header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2, 2), }") ==
          "Fortran order is not supported; save numpy.ascontiguousarray(a)");
    CHECK(fault_of_header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }") ==
          "structured arrays are not supported; save each field as an array of its own");
    CHECK(fault_of_header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }") ==
          "elements of type '<c8' are not supported: there are integers of 1 to 8 bytes, f2, f4, f8, and V2 for "
          "bfloat16");
    CHECK(fault_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }") ==
          "8 bytes of elements, which is not what f32[4611686018427387904, 4] takes");
}

TEST_CASE("a malformed header is named so") {
    for (const char* header :
         {"", "[]", "{", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
          "{'descr': '<f4', 'fortran_order': false, 'shape': (2,), }",
          "{'descr': 4, 'fortran_order': False, 'shape': ()}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "{'descr': '<f4, 'fortran_order': False}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "{'descr': '<f4', 'more': False, 'shape': (2,), }",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"}) {
        CAPTURE(header);
        CHECK(fault_of(make_file(1, header, "12345678")).starts_with("the header is malformed: "));
    }
}

TEST_CASE("a missing file and a folder are named so") {
    const TemporaryFolder folder;
    CHECK_THROWS_WITH_AS(read_npy("/missing/a.npy"), "/missing/a.npy: No such file or directory", UsageError);
    CHECK_THROWS_WITH_AS(read_npy(folder.path()), fmt::format("{}: is a directory", folder.path().string()).c_str(),
                         UsageError);
}

}  // namespace
}  // namespace block_attention
