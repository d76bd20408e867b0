#include "verify/simulator/layout/tensor_copy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "verify/simulator/layout/layout_algebra.h"

namespace block_attention::simulator {
namespace {

/// Where a byte of shared memory comes from or goes to.
struct Source {
    std::uint64_t global = 0;
    bool inside = false;

    bool operator==(const Source&) const = default;
};

using ByteMap = std::map<std::uint32_t, Source>;  // by shared address

ByteMap walk(const TensorMap& map, const TensorCoordinates& coordinates, std::uint32_t shared,
             TensorCopyDirection direction) {
    ByteMap bytes;
    for_each_run(map, coordinates, shared, direction, [&](const TensorRun& run) {
        for (std::uint32_t i = 0; i < run.bytes; ++i) {
            const Source source{run.inside ? run.global + i : 0, run.inside};
            const bool fresh = bytes.emplace(run.shared + i, source).second;
            REQUIRE(fresh);
        }
    });
    return bytes;
}

/// The same from the definition, element by element: nested loops over the box, the XOR in CuTe's notation.
ByteMap walk_elements(const TensorMap& map, const TensorCoordinates& start, std::uint32_t shared,
                      TensorCopyDirection direction) {
    ByteMap bytes;
    const std::uint32_t size = element_bytes(map);
    std::array<std::uint32_t, 5> stride{1, 1, 1, 1, 1};
    std::array<std::uint32_t, 5> taken{1, 1, 1, 1, 1};
    for (std::uint32_t d = 0; d < map.rank; ++d) {
        if (d > 0) stride[d] = map.element_strides[d];
        for (taken[d] = 0; taken[d] * stride[d] < map.box[d];) ++taken[d];
    }
    const std::array<std::uint32_t, 4> spans{taken[0] * size, 32, 64, 128};
    const auto mode = static_cast<std::uint32_t>(map.swizzle);
    std::array<std::uint32_t, 5> i{};
    std::uint32_t row = 0;
    for (i[4] = 0; i[4] < taken[4]; ++i[4]) {
        for (i[3] = 0; i[3] < taken[3]; ++i[3]) {
            for (i[2] = 0; i[2] < taken[2]; ++i[2]) {
                for (i[1] = 0; i[1] < taken[1]; ++i[1], ++row) {
                    for (i[0] = 0; i[0] < taken[0]; ++i[0]) {
                        bool inside = true;
                        std::int64_t offset = 0;
                        for (std::uint32_t d = 0; d < map.rank; ++d) {
                            const std::int64_t x = std::int64_t{start[d]} + std::int64_t{i[d]} * stride[d];
                            auto limit = static_cast<std::int64_t>(map.dims[d]);
                            if (d == 0 && direction == TensorCopyDirection::store) {
                                while (limit * size % 16 != 0) ++limit;
                            }
                            inside = inside && x >= 0 && x < limit;
                            const std::int64_t step =
                                d == 0 ? size : static_cast<std::int64_t>(map.byte_strides[d - 1]);
                            offset += x * step;
                        }
                        const std::uint32_t plain = shared + row * spans.at(mode) + i[0] * size;
                        const std::uint32_t place = layout_algebra::swizzle(mode, 4, 3, plain);
                        for (std::uint32_t b = 0; b < size; ++b) {
                            const std::uint64_t global = map.address + static_cast<std::uint64_t>(offset) + b;
                            bytes.emplace(place + b, Source{inside ? global : 0, inside});
                        }
                    }
                }
            }
        }
    }
    return bytes;
}

TensorMap make_map(TensorMapType type, std::vector<std::uint64_t> dims, std::vector<std::uint64_t> strides,
                   std::vector<std::uint32_t> box, SwizzleMode swizzle = SwizzleMode::none) {
    TensorMap map;
    map.type = type;
    map.rank = static_cast<std::uint32_t>(dims.size());
    map.address = 0x7000000000;
    std::ranges::copy(dims, map.dims.begin());
    std::ranges::copy(strides, map.byte_strides.begin());
    std::ranges::copy(box, map.box.begin());
    map.swizzle = swizzle;
    REQUIRE(validate(map, 90).empty());
    return map;
}

void check_against_elements(const TensorMap& map, const TensorCoordinates& start, std::uint32_t shared,
                            TensorCopyDirection direction) {
    REQUIRE(check_tensor_copy(map, start, shared, direction).empty());
    const ByteMap expected = walk_elements(map, start, shared, direction);
    CHECK(walk(map, start, shared, direction) == expected);
    const TensorBox box(map);
    CHECK(box.transaction_bytes() == expected.size());
    CHECK(expected.rbegin()->first < shared + box.shared_bytes());
}

/// A random map of one rank, and a start for a copy with it that does not trap.
class RandomCopy {
  public:
    RandomCopy(std::mt19937& random, TensorCopyDirection direction) : random_(random) {
        constexpr std::array kTypes{TensorMapType::uint8, TensorMapType::bfloat16, TensorMapType::float32,
                                    TensorMapType::float64};
        const std::uint32_t rank = 1 + below(5);
        const TensorMapType type = kTypes.at(below(4));
        const std::uint32_t mode = below(4);
        const std::uint32_t per_chunk = 128 / element_bits(type);
        const std::uint32_t chunks = 1 + below(mode == 0 ? 9 : 1U << mode);
        std::vector<std::uint64_t> dims{1 + below(3 * chunks * per_chunk)};
        std::vector<std::uint64_t> strides;
        std::vector<std::uint32_t> box{chunks * per_chunk};
        for (std::uint32_t d = 1; d < rank; ++d) {
            dims.push_back(1 + below(9));
            strides.push_back(std::uint64_t{16} * below(1000));
            box.push_back(1 + below(rank < 4 ? 9 : 4));
        }
        map = make_map(type, dims, strides, box, static_cast<SwizzleMode>(mode));
        const int lowest = direction == TensorCopyDirection::load ? -8 : 0;
        for (std::uint32_t d = 0; d < rank; ++d) {
            map.element_strides.at(d) = 1 + below(3);
            start.at(d) = lowest + static_cast<int>(below(20));
        }
        start[0] *= static_cast<int>(per_chunk);
        shared = 0x400 + 128 * below(64);
    }

    TensorMap map;
    TensorCoordinates start{};
    std::uint32_t shared = 0;

  private:
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

    std::mt19937& random_;
};

TEST_CASE("the walk is that of the definition, for random maps of every rank, type, swizzle, stride and position") {
    std::mt19937 random(3);
    for (const auto direction : {TensorCopyDirection::load, TensorCopyDirection::store}) {
        for (int i = 0; i < 500; ++i) {
            const RandomCopy copy(random, direction);
            check_against_elements(copy.map, copy.start, copy.shared, direction);
        }
    }
}

TEST_CASE("far outside the tensor, also beyond 32 bits, a load fills and a store skips everything") {
    const TensorMap map = make_map(TensorMapType::bfloat16, {64, 100}, {128}, {64, 8}, SwizzleMode::b128);
    constexpr int kLowest = -2147483647 - 1;
    for (const TensorCoordinates& start :
         {TensorCoordinates{0, 100}, TensorCoordinates{64, 0}, TensorCoordinates{-64, 0}, TensorCoordinates{0, -8},
          TensorCoordinates{0, kLowest}, TensorCoordinates{kLowest, kLowest}, TensorCoordinates{2147483640, 2147483647},
          TensorCoordinates{-1000000, 1000000}}) {
        const ByteMap bytes = walk(map, start, 0x800, TensorCopyDirection::load);
        CHECK(bytes.size() == 1024);
        for (const auto& [shared, source] : bytes) REQUIRE_FALSE(source.inside);
        check_against_elements(map, start, 0x800, TensorCopyDirection::load);
    }
    check_against_elements(map, {0, 2147483647}, 0x800, TensorCopyDirection::store);
}

std::size_t inside_bytes(const ByteMap& bytes) {
    return static_cast<std::size_t>(
        std::ranges::count_if(bytes, [](const auto& entry) { return entry.second.inside; }));
}

TEST_CASE("a store clips dimension 0 at 16 bytes, a load at the element") {
    struct Row {
        std::uint64_t dim;    // elements of 16 bits
        std::size_t written;  // elements of a row, measured on H200
    };
    for (const auto& [dim, written] : {Row{64, 64}, Row{63, 64}, Row{61, 64}, Row{57, 64}, Row{56, 56}, Row{33, 40},
                                       Row{9, 16}, Row{8, 8}, Row{7, 8}, Row{1, 8}}) {
        for (const SwizzleMode swizzle : {SwizzleMode::none, SwizzleMode::b128}) {
            const TensorMap map = make_map(TensorMapType::float16, {dim, 100}, {128}, {64, 8}, swizzle);
            CHECK(inside_bytes(walk(map, {0, 0}, 0x400, TensorCopyDirection::store)) == written * 16);
            CHECK(inside_bytes(walk(map, {0, 0}, 0x400, TensorCopyDirection::load)) == dim * 16);
            CHECK(inside_bytes(walk(map, {0, 96}, 0x400, TensorCopyDirection::store)) == written * 8);
        }
    }
}

TEST_CASE("element strides: the elements taken, and the bytes counted, as measured on H200") {
    struct Strided {
        std::vector<std::uint32_t> box;
        std::vector<std::uint32_t> strides;
        std::uint32_t bytes;
    };
    for (const auto& [box, strides, bytes] :
         {Strided{{64, 8}, {1, 1}, 1024}, Strided{{64, 8}, {1, 2}, 512}, Strided{{64, 7}, {1, 2}, 512},
          Strided{{64, 8}, {1, 3}, 384}, Strided{{64, 8}, {1, 8}, 128}, Strided{{64, 256}, {1, 8}, 4096},
          Strided{{64, 4}, {2, 1}, 512}, Strided{{64, 4}, {8, 2}, 256}, Strided{{64, 7, 8}, {1, 2, 3}, 1536},
          Strided{{16, 3, 4, 5, 6}, {1, 2, 2, 2, 2}, 1152}, Strided{{64}, {3}, 128}}) {
        const std::vector<std::uint64_t> dims(box.size(), 1000);
        const std::vector<std::uint64_t> byte_strides(box.size() - 1, 2000);
        TensorMap map = make_map(TensorMapType::uint16, dims, byte_strides, box);
        std::ranges::copy(strides, map.element_strides.begin());
        CHECK(TensorBox(map).transaction_bytes() == bytes);
    }
}

TEST_CASE("a narrow row under a swizzle keeps the span as its pitch, and the gap untouched") {
    for (std::uint32_t width = 8; width <= 64; width += 8) {
        const TensorMap map = make_map(TensorMapType::float16, {64, 64}, {128}, {width, 16}, SwizzleMode::b128);
        const TensorBox box(map);
        CHECK(box.row_pitch == 128);
        CHECK(box.transaction_bytes() == 16 * width * 2);
        CHECK(box.shared_bytes() == 16 * 128);
        for (const auto& [shared, source] : walk(map, {0, 0}, 0x400, TensorCopyDirection::load)) {
            const std::uint32_t offset = swizzled(SwizzleMode::b128, shared) - 0x400;
            REQUIRE(offset % 128 < 2 * width);
            REQUIRE(source.global == map.address + offset);
        }
    }
    CHECK(TensorBox(make_map(TensorMapType::float16, {64, 64}, {128}, {24, 16})).row_pitch == 48);
}

TEST_CASE("the swizzle depends on the absolute address: element (r, c) of a 64-column box") {
    const TensorMap map = make_map(TensorMapType::float16, {64, 64}, {128}, {64, 64}, SwizzleMode::b128);
    for (std::uint32_t line = 0; line < 8; ++line) {
        const std::uint32_t base = 0x4000 + 128 * line;
        const ByteMap bytes = walk(map, {0, 0}, base, TensorCopyDirection::load);
        for (std::uint32_t r = 0; r < 64; ++r) {
            for (std::uint32_t c = 0; c < 64; ++c) {
                const std::uint32_t place = base + r * 128 + ((c / 8) ^ ((r + line) % 8)) * 16 + c % 8 * 2;
                REQUIRE(bytes.at(place).global == map.address + std::uint64_t{r} * 128 + std::uint64_t{c} * 2);
            }
        }
    }
}

TEST_CASE("runs are as long as possible") {
    const auto runs = [](const TensorMap& map, const TensorCoordinates& start) {
        std::vector<std::uint32_t> lengths;
        for_each_run(map, start, 0x400, TensorCopyDirection::load,
                     [&](const TensorRun& run) { lengths.push_back(run.bytes); });
        return lengths;
    };
    using Lengths = std::vector<std::uint32_t>;
    const TensorMap plain = make_map(TensorMapType::float16, {60, 64}, {128}, {64, 2});
    CHECK(runs(plain, {0, 0}) == Lengths{120, 8, 120, 8});
    CHECK(runs(plain, {0, 63}) == Lengths{120, 8, 128});
    CHECK(runs(plain, {-8, 0}) == Lengths{16, 112, 16, 112});
    const TensorMap swizzled_map = make_map(TensorMapType::float16, {28, 64}, {128}, {32, 1}, SwizzleMode::b64);
    CHECK(runs(swizzled_map, {0, 0}) == Lengths{16, 16, 16, 8, 8});
}

TEST_CASE("copies trap where the hardware does") {
    const auto bf16 = make_map(TensorMapType::bfloat16, {64, 100}, {128}, {64, 8});
    const auto load = TensorCopyDirection::load;
    const auto store = TensorCopyDirection::store;
    for (std::uint32_t offset = 16; offset < 128; offset += 16) {
        CHECK(check_tensor_copy(bf16, {0, 0}, 0x400 + offset, load).find("it must be a multiple of 128") !=
              std::string::npos);
    }
    CHECK(check_tensor_copy(bf16, {0, 0}, 0x410, store) ==
          "the shared address of the tensor store is 0x410: it must be a multiple of 128");
    CHECK(check_tensor_copy(bf16, {0, 0}, 0x480, load).empty());

    struct Step {
        TensorMapType type;
        int elements;
    };
    for (const auto& [type, elements] : {Step{TensorMapType::uint8, 16}, Step{TensorMapType::bfloat16, 8},
                                         Step{TensorMapType::float32, 4}, Step{TensorMapType::float64, 2}}) {
        const auto map = make_map(type, {1000, 100}, {16000}, {16, 8});
        for (int c = -40; c <= 1040; ++c) {
            CHECK(check_tensor_copy(map, {c, 0}, 0x400, load).empty() == (c % elements == 0));
            CHECK(check_tensor_copy(map, {c, 0}, 0x400, store).empty() == (c % elements == 0 && c >= 0));
        }
    }
    CHECK(check_tensor_copy(bf16, {4, 0}, 0x400, load) ==
          "coordinate 0 of the tensor load is 4: with elements of 2 bytes it must be a multiple of 8");

    const auto map_5d = make_map(TensorMapType::bfloat16, {64, 4, 4, 4, 4}, {128, 512, 2048, 8192}, {64, 1, 1, 1, 1});
    for (std::uint32_t d = 0; d < 5; ++d) {
        TensorCoordinates start{};
        start.at(d) = -8;
        CHECK(check_tensor_copy(map_5d, start, 0x400, load).empty());
        CHECK(check_tensor_copy(map_5d, start, 0x400, store) ==
              "coordinate " + std::to_string(d) + " of the tensor store is -8: it must not be negative");
    }
    CHECK(check_tensor_copy(bf16, {0, 0, -1, -1, -1}, 0x400, store).empty());  // beyond the rank
}

TEST_CASE("fill and conversion are those of the H200") {
    TensorMap map = make_map(TensorMapType::float16, {64, 100}, {128}, {64, 8});
    CHECK(fill_pattern(map) == 0);
    map.fill = TensorMapFill::nan;
    CHECK(fill_pattern(map) == 0x7FF7);

    struct Sample {
        std::uint32_t from;
        std::uint32_t to;
    };
    const std::vector<Sample> samples{
        {0x3F800000, 0x3F800000}, {0x3F800001, 0x3F800000}, {0x3F800FFF, 0x3F800000}, {0x3F801000, 0x3F800000},
        {0x3F801001, 0x3F802000}, {0x3F802FFF, 0x3F802000}, {0x3F803000, 0x3F804000}, {0x3F803001, 0x3F804000},
        {0xBF801000, 0xBF800000}, {0xBF801001, 0xBF802000}, {0x7F7FFFFF, 0x7F800000}, {0x7F7FEFFF, 0x7F7FE000},
        {0x7F800000, 0x7F800000}, {0xFF800000, 0xFF800000}, {0x7F800001, 0x7FFFE000}, {0x7FC00000, 0x7FFFE000},
        {0xFFC12345, 0x7FFFE000}, {0x00000001, 0x00000000}, {0x007FFFFF, 0x00800000}, {0x00001001, 0x00002000},
        {0x80000001, 0x80000000}, {0x807FF000, 0x80800000}, {0x00003000, 0x00004000}, {0x80000000, 0x80000000}};
    for (std::uint32_t i = 0; i < 13; ++i) {
        const auto type = static_cast<TensorMapType>(i);
        const bool converts = type == TensorMapType::tfloat32 || type == TensorMapType::tfloat32_ftz;
        for (const Sample& sample : samples) {
            std::array<std::uint32_t, 2> values{sample.from, sample.from};
            convert_loaded(type, std::as_writable_bytes(std::span(values)));
            CHECK(values[0] == (converts ? sample.to : sample.from));
            CHECK(values[1] == values[0]);
        }
    }
}

}  // namespace
}  // namespace block_attention::simulator
