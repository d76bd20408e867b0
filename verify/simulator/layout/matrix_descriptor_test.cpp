#include "verify/simulator/layout/matrix_descriptor.h"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "verify/simulator/layout/layout_algebra.h"

namespace block_attention::simulator {
namespace {

constexpr std::array kSwizzles{SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128};

MatrixDescriptor make(std::uint32_t start, std::uint32_t leading, std::uint32_t stride, SwizzleMode swizzle,
                      std::uint32_t base_offset = 0) {
    return {start, leading, stride, base_offset, swizzle};
}

TEST_CASE("worked descriptors: tiles of 64-column 128B boxes, Q and K as they lie, V transposed") {
    const auto b128 = SwizzleMode::b128;
    CHECK(encode_tcgen05_descriptor(make(0, 16, 1024, b128)) == 0x4000404000010000);
    CHECK(encode_tcgen05_descriptor(make(0, 0, 1024, b128)) == 0x4000404000000000);
    CHECK(encode_tcgen05_descriptor(make(0x8420, 16, 1024, b128)) == 0x4000404000010842);
    CHECK(encode_tcgen05_descriptor(make(0, 8192, 1024, b128)) == 0x4000404002000000);
    CHECK(encode_tcgen05_descriptor(make(0, 16384, 1024, b128)) == 0x4000404004000000);
    CHECK(encode_wgmma_descriptor(make(0, 16, 1024, b128)) == 0x4000004000010000);
    CHECK(encode_wgmma_descriptor(make(0, 0, 1024, b128)) == 0x4000004000000000);
    CHECK(encode_wgmma_descriptor(make(0, 8192, 1024, b128)) == 0x4000004002000000);
    CHECK(encode_tcgen05_descriptor(make(0, 1024, 128, SwizzleMode::none)) == 0x0000400800400000);
    CHECK(encode_wgmma_descriptor(make(0, 1024, 128, SwizzleMode::none)) == 0x0000000800400000);

    CHECK(decode_tcgen05_descriptor(0x4000404000010842) == make(0x8420, 16, 1024, b128));
    CHECK(decode_tcgen05_descriptor(0x4000404002000000) == make(0, 8192, 1024, b128));
    CHECK(decode_wgmma_descriptor(0x4000004002000000) == make(0, 8192, 1024, b128));
    CHECK(decode_wgmma_descriptor(0x0000000800400000) == make(0, 1024, 128, SwizzleMode::none));
}

TEST_CASE("every field of both descriptors is where the PTX ISA puts it") {
    struct Code {
        SwizzleMode swizzle;
        std::uint64_t wgmma;
        std::uint64_t tcgen05;
    };
    for (const Code& code : {Code{SwizzleMode::none, 0, 0}, Code{SwizzleMode::b128, 1, 2}, Code{SwizzleMode::b64, 2, 4},
                             Code{SwizzleMode::b32, 3, 6}}) {
        for (unsigned bit = 0; bit < 14; ++bit) {
            const std::uint32_t bytes = 16U << bit;
            const std::uint64_t one = std::uint64_t{1} << bit;
            const std::uint64_t tail = code.tcgen05 << 61 | std::uint64_t{1} << 46;
            CHECK(encode_wgmma_descriptor(make(bytes, 0, 0, code.swizzle)) == (one | code.wgmma << 62));
            CHECK(encode_wgmma_descriptor(make(0, bytes, 0, code.swizzle)) == (one << 16 | code.wgmma << 62));
            CHECK(encode_wgmma_descriptor(make(0, 0, bytes, code.swizzle)) == (one << 32 | code.wgmma << 62));
            CHECK(encode_tcgen05_descriptor(make(bytes, 0, 0, code.swizzle)) == (one | tail));
            CHECK(encode_tcgen05_descriptor(make(0, bytes, 0, code.swizzle)) == (one << 16 | tail));
            CHECK(encode_tcgen05_descriptor(make(0, 0, bytes, code.swizzle)) == (one << 32 | tail));
        }
        for (std::uint32_t offset = 0; offset < 8; ++offset) {
            const auto descriptor = make(0x400, 0, 1024, code.swizzle, offset);
            CHECK(encode_wgmma_descriptor(descriptor) ==
                  (std::uint64_t{offset} << 49 | code.wgmma << 62 | 64ULL << 32 | 0x40));
            CHECK(decode_wgmma_descriptor(encode_wgmma_descriptor(descriptor)) == descriptor);
        }
    }
    CHECK(encode_tcgen05_descriptor(make(0, 0, 0, SwizzleMode::b128_atom_32)) == (1ULL << 61 | 1ULL << 46));
    // matrix-descriptor-encode keeps 18 bits.
    CHECK(encode_wgmma_descriptor(make(0x7F030400, 0, 0, SwizzleMode::none)) == 0x3040);

    std::mt19937_64 random(4);
    for (int i = 0; i < 1000; ++i) {
        const auto field = [&] { return static_cast<std::uint32_t>(random() % (1U << 14)) * 16; };
        const auto descriptor = make(field(), field(), field(), kSwizzles.at(random() % 4));
        CHECK(decode_wgmma_descriptor(encode_wgmma_descriptor(descriptor)) == descriptor);
        CHECK(decode_tcgen05_descriptor(encode_tcgen05_descriptor(descriptor)) == descriptor);
    }
}

/// The canonical layouts of PTX ISA 9.7.15.5.1.2.1.3 for 16-bit elements (T = 8), in elements: index mn, then k.
layout_algebra::Layout canonical(const MatrixDescriptor& d, Major major, std::uint32_t extent) {
    const std::uint32_t span = pattern_of(d.swizzle).span_bytes;
    const std::uint32_t leading = d.leading / 2;
    const std::uint32_t stride = d.stride / 2;
    if (major == Major::k) {
        const std::uint32_t row = span == 0 ? 8 : span / 2;
        const std::uint32_t next_chunk = span == 0 ? leading : 8;
        return {{8, row}, {extent / 8, stride}, {8, 1}, {2, next_chunk}};
    }
    if (span == 0) return {{8, 1}, {extent / 8, stride}, {8, 8}, {2, leading}};
    const std::uint32_t chunks = span / 16;
    return {{8, 1}, {chunks, 8}, {extent / (8 * chunks), leading}, {8, 8 * chunks}, {2, stride}};
}

/// Byte address by the canonical layout. A base offset shifts the pattern, hence the two detours by whole lines.
std::uint32_t canonical_address(const MatrixDescriptor& d, Major major, std::uint32_t extent, std::uint32_t mn,
                                std::uint32_t k) {
    const std::uint32_t element = layout_algebra::offset_of(canonical(d, major, extent), mn + extent * k);
    const std::array<std::uint32_t, 4> bits{0, 1, 2, 3};
    const std::uint32_t shift = 1024 - 128 * d.base_offset;
    return layout_algebra::swizzle(bits.at(static_cast<std::size_t>(d.swizzle)), 4, 3, d.start + 2 * element + shift) -
           shift;
}

TEST_CASE(
    "elements lie where the canonical layouts put them: both majors, four swizzles, natural and stretched strides") {
    std::mt19937 random(5);
    for (const SwizzleMode swizzle : kSwizzles) {
        for (const Major major : {Major::k, Major::mn}) {
            for (int i = 0; i < 200; ++i) {
                const std::uint32_t extent = 64 * (1 + static_cast<std::uint32_t>(random() % 4));
                const auto field = [&] { return static_cast<std::uint32_t>(random() % 512) * 16; };
                const std::uint32_t base_offset =
                    swizzle == SwizzleMode::none ? 0 : static_cast<std::uint32_t>(random() % 8);
                const MatrixDescriptor d = make(0x4000 + field(), field(), field(), swizzle, base_offset);
                for (std::uint32_t mn = 0; mn < extent; ++mn) {
                    for (std::uint32_t k = 0; k < kMmaK; ++k) {
                        REQUIRE(element_address(d, major, mn, k) == canonical_address(d, major, extent, mn, k));
                    }
                }
            }
        }
    }
}

TEST_CASE("the leading offset of swizzled K-major operands, and of one 64-column block, is ignored") {
    for (const std::uint32_t leading : {0U, 16U, 777U * 16}) {
        for (std::uint32_t k = 0; k < kMmaK; ++k) {
            for (std::uint32_t mn = 0; mn < 64; ++mn) {
                const MatrixDescriptor ignored = make(0x8000, leading, 1024, SwizzleMode::b128);
                const MatrixDescriptor zero = make(0x8000, 0, 1024, SwizzleMode::b128);
                for (const Major major : {Major::k, Major::mn}) {
                    REQUIRE(element_address(ignored, major, mn, k) == element_address(zero, major, mn, k));
                }
            }
        }
    }
}

TEST_CASE("the PTX ISA's own examples: MN-major bf16 with no, 32B and 64B swizzle") {
    struct Example {
        SwizzleMode swizzle;
        std::uint32_t leading;  // elements
        std::uint32_t stride;
        layout_algebra::Layout exact;
    };
    for (const Example& example :
         {Example{SwizzleMode::none, 128, 64, {{8, 1}, {1, 8}, {2, 64}, {8, 8}, {2, 128}}},
          Example{SwizzleMode::b32, 128, 256, {{8, 1}, {2, 8}, {2, 128}, {8, 16}, {2, 256}}},
          Example{SwizzleMode::b64, 256, 512, {{8, 1}, {4, 8}, {2, 256}, {8, 32}, {2, 512}}}}) {
        const MatrixDescriptor d = make(0, 2 * example.leading, 2 * example.stride, example.swizzle);
        const std::uint32_t extent = layout_algebra::size_of(example.exact) / kMmaK;
        for (std::uint32_t k = 0; k < kMmaK; ++k) {
            for (std::uint32_t mn = 0; mn < extent; ++mn) {
                const std::uint32_t plain = 2 * layout_algebra::offset_of(example.exact, mn + extent * k);
                REQUIRE(element_address(d, Major::mn, mn, k) == swizzled(example.swizzle, plain));
            }
        }
    }
}

TEST_CASE("gather_operand collects the elements by their addresses, each chunk once") {
    std::mt19937 random(6);
    std::vector<std::byte> shared(std::size_t{1} << 20);
    for (auto& byte : shared) byte = static_cast<std::byte>(random());
    for (const SwizzleMode swizzle :
         {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128, SwizzleMode::b128_atom_32}) {
        for (const Major major : {Major::k, Major::mn}) {
            for (const std::uint32_t extent : {8U, 24U, 64U, 128U, 256U}) {
                const MatrixDescriptor d = make(0x1000 + 32, 40960, 1024 + 128, swizzle);
                std::vector<std::uint16_t> packed(std::size_t{extent} * kMmaK);
                std::map<std::uint32_t, int> reads;
                gather_operand(
                    d, major, extent,
                    [&](std::uint32_t address) {
                        ++reads[address];
                        return &shared.at(address);
                    },
                    packed.data());
                CHECK(reads.size() == extent * kMmaK / 8);
                for (const auto& [address, count] : reads) {
                    CHECK(address % 16 == 0);
                    CHECK(count == 1);
                }
                for (std::uint32_t mn = 0; mn < extent; ++mn) {
                    for (std::uint32_t k = 0; k < kMmaK; ++k) {
                        std::uint16_t expected = 0;
                        std::memcpy(&expected, &shared.at(element_address(d, major, mn, k)), 2);
                        REQUIRE(packed[mn * kMmaK + k] == expected);
                    }
                }
            }
        }
    }
}

TEST_CASE("checks of wgmma descriptors: every value runs, ignored bits are noted") {
    CHECK(check_wgmma_descriptor(0x4000004002000000).warning.empty());
    for (unsigned bit = 0; bit < 64; ++bit) {
        const bool field =
            bit < 14 || (bit >= 16 && bit < 30) || (bit >= 32 && bit < 46) || (bit >= 49 && bit < 52) || bit >= 62;
        const Verdict verdict = check_wgmma_descriptor(std::uint64_t{1} << bit);
        CHECK(verdict.ok());
        CHECK(verdict.warning.empty() == field);
        if (!field) {
            CHECK(decode_wgmma_descriptor(std::uint64_t{1} << bit) == MatrixDescriptor{});
        }
    }
    CHECK(check_wgmma_descriptor(0x4000404000010842).warning ==
          "the matrix descriptor 0x4000404000010842 has bits 0x0000400000000000 that wgmma ignores; is it one for "
          "tcgen05, "
          "whose swizzle codes differ?");
}

TEST_CASE("checks of tcgen05 descriptors") {
    const std::uint64_t good = 0x4000404000010842;
    for (const Major major : {Major::k, Major::mn}) {
        CHECK(check_tcgen05_descriptor(good, major).ok());
        CHECK(check_tcgen05_descriptor(good, major).warning.empty());
    }
    const auto error = [](std::uint64_t bits) { return check_tcgen05_descriptor(bits, Major::k).error; };
    CHECK(error(0x4000004000010842) ==
          "bits 46-48 of the matrix descriptor 0x4000004000010842 are 0: tcgen05 needs 1, wgmma descriptors have 0");
    for (std::uint64_t version = 0; version < 8; ++version) {
        const bool ok = error((good & ~(7ULL << 46)) | version << 46).empty();
        CHECK(ok == (version == 1));
    }
    for (const unsigned bit : {14U, 15U, 30U, 31U, 53U, 54U, 55U, 56U, 57U, 58U, 59U, 60U}) {
        CHECK(error(good | 1ULL << bit).find("reserved bits") != std::string::npos);
    }
    CHECK(error(good | 1ULL << 52).find("needs sm_103") != std::string::npos);
    for (std::uint64_t code = 0; code < 8; ++code) {
        const bool valid = code == 0 || code == 1 || code == 2 || code == 4 || code == 6;
        const std::uint64_t bits = (good & ~(7ULL << 61)) | code << 61;
        CHECK(error(bits).empty() == valid);
        if (!valid) {
            CHECK(error(bits).find("is " + std::to_string(code) + ": valid are 0 (none)") != std::string::npos);
        }
    }
    for (std::uint64_t offset = 1; offset < 8; ++offset) {
        CHECK(error(good | offset << 49).find("base offset (bits 49-51)") != std::string::npos);
    }
    const std::uint64_t atom_32 = (good & ~(7ULL << 61)) | 1ULL << 61;
    CHECK(check_tcgen05_descriptor(atom_32, Major::k).ok());
    CHECK(check_tcgen05_descriptor(atom_32, Major::mn).error.find("MN-major operand") != std::string::npos);
}

TEST_CASE("a tcgen05 tile off its swizzle's boundary is noted, an advance along K is not") {
    struct Pattern {
        SwizzleMode swizzle;
        std::uint32_t bytes;
    };
    for (const auto& [swizzle, bytes] : {Pattern{SwizzleMode::none, 16}, Pattern{SwizzleMode::b32, 256},
                                         Pattern{SwizzleMode::b64, 512}, Pattern{SwizzleMode::b128, 1024}}) {
        for (std::uint32_t start = 0x8000; start < 0x8800; start += 16) {
            const std::uint64_t bits = encode_tcgen05_descriptor(make(start, 0, 1024, swizzle));
            const Verdict verdict = check_tcgen05_descriptor(bits, Major::k);
            CHECK(verdict.ok());
            CHECK(verdict.warning.empty() == (start % bytes < 128));
        }
    }
}

}  // namespace
}  // namespace block_attention::simulator
