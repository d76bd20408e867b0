#include "verify/simulator/layout/swizzle.h"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "verify/simulator/layout/layout_algebra.h"

namespace block_attention::simulator {
namespace {

constexpr std::array kModelled{SwizzleMode::none, SwizzleMode::b32,          SwizzleMode::b64,
                               SwizzleMode::b128, SwizzleMode::b128_atom_32, SwizzleMode::b128_atom_64};

/// The tables of PTX ISA 5.5.7: for each 128-byte line, which chunk of 16 bytes of the source lies at each place.
struct Table {
    SwizzleMode mode;
    std::vector<std::string> lines;
};

const std::vector<Table> kTables{
    {SwizzleMode::none, {"01234567"}},
    {SwizzleMode::b32, {"01234567", "10325476"}},
    {SwizzleMode::b64, {"01234567", "10325476", "23016745", "32107654"}},
    {SwizzleMode::b128,
     {"01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"}},
    {SwizzleMode::b128_atom_32, {"01234567", "23016745", "45670123", "67452301"}},
    {SwizzleMode::b128_atom_64, {"01234567", "45670123"}},
};

TEST_CASE("swizzles are those of the PTX ISA's tables, repeated") {
    for (const Table& table : kTables) {
        const auto lines = static_cast<std::uint32_t>(table.lines.size());
        for (std::uint32_t line = 0; line < 64; ++line) {
            for (std::uint32_t place = 0; place < 8; ++place) {
                const auto chunk = static_cast<std::uint32_t>(table.lines[line % lines][place] - '0');
                for (std::uint32_t byte = 0; byte < 16; ++byte) {
                    const std::uint32_t source = line * 128 + chunk * 16 + byte;
                    CHECK(swizzled(table.mode, source) == line * 128 + place * 16 + byte);
                }
            }
        }
    }
}

TEST_CASE("swizzles are CuTe's") {
    for (std::uint32_t address = 0; address < 1U << 18; ++address) {
        REQUIRE(swizzled(SwizzleMode::none, address) == address);
        REQUIRE(swizzled(SwizzleMode::b32, address) == layout_algebra::swizzle(1, 4, 3, address));
        REQUIRE(swizzled(SwizzleMode::b64, address) == layout_algebra::swizzle(2, 4, 3, address));
        REQUIRE(swizzled(SwizzleMode::b128, address) == layout_algebra::swizzle(3, 4, 3, address));
        REQUIRE(swizzled(SwizzleMode::b128_atom_32, address) == layout_algebra::swizzle(2, 5, 2, address));
    }
}

TEST_CASE("the swizzle that is not modelled says so") {
    CHECK_FALSE(is_modelled(SwizzleMode::b128_atom_32_flip_8));
    CHECK_FALSE(is_modelled(static_cast<SwizzleMode>(7)));
    CHECK(pattern_of(SwizzleMode::b128_atom_32_flip_8).span_bytes == 128);
    for (const SwizzleMode mode : kModelled) CHECK(is_modelled(mode));
}

TEST_CASE("a swizzle undoes itself and permutes the bytes of each span-wide column of its pattern") {
    for (const SwizzleMode mode : kModelled) {
        const SwizzlePattern pattern = pattern_of(mode);
        for (std::uint32_t base_offset = 0; base_offset < 8; ++base_offset) {
            std::set<std::uint32_t> seen;
            for (std::uint32_t address = 4096; address < 8192; ++address) {
                const std::uint32_t there = swizzled(mode, address, base_offset);
                REQUIRE(swizzled(mode, there, base_offset) == address);
                REQUIRE(there / 128 == address / 128);
                if (pattern.span_bytes != 0) {
                    REQUIRE(there / pattern.span_bytes == address / pattern.span_bytes);
                    REQUIRE(there % pattern.chunk_bytes == address % pattern.chunk_bytes);
                }
                seen.insert(there);
            }
            CHECK(seen.size() == 4096);
        }
    }
}

TEST_CASE("a base offset makes the pattern start where the tile does") {
    for (const SwizzleMode mode : {SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
        for (std::uint32_t line = 0; line < 8; ++line) {
            const std::uint32_t start = 5 * 1024 + line * 128;
            for (std::uint32_t offset = 0; offset < 2048; ++offset) {
                REQUIRE(swizzled(mode, start + offset, line) == start + swizzled(mode, offset));
            }
        }
    }
}

TEST_CASE("modes have names") {
    std::set<std::string_view> names;
    for (std::uint32_t mode = 0; mode <= 7; ++mode) names.insert(name_of(static_cast<SwizzleMode>(mode)));
    CHECK(names.size() == 8);
    CHECK(name_of(SwizzleMode::b128) == "128B");
}

}  // namespace
}  // namespace block_attention::simulator
