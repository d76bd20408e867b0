#include "verify/simulator/layout/tensor_map.h"

#include <cuda.h>
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <vector>

namespace block_attention::simulator {
namespace {

// The enumerations once more, as cuda.h has them.
template <typename Ours, typename Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
    return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(sizeof(CUtensorMap) == kTensorMapBytes);
static_assert(same(TensorMapType::uint8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(same(TensorMapType::uint16, CU_TENSOR_MAP_DATA_TYPE_UINT16));
static_assert(same(TensorMapType::uint32, CU_TENSOR_MAP_DATA_TYPE_UINT32));
static_assert(same(TensorMapType::int32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(same(TensorMapType::uint64, CU_TENSOR_MAP_DATA_TYPE_UINT64));
static_assert(same(TensorMapType::int64, CU_TENSOR_MAP_DATA_TYPE_INT64));
static_assert(same(TensorMapType::float16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same(TensorMapType::float32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same(TensorMapType::float64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
static_assert(same(TensorMapType::bfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same(TensorMapType::float32_ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ));
static_assert(same(TensorMapType::tfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
static_assert(same(TensorMapType::tfloat32_ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ));
static_assert(same(TensorMapType::u4x16_align8, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B));
static_assert(same(TensorMapType::u4x16_align16, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B));
static_assert(same(TensorMapType::u6x16_align16, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B));
static_assert(same(TensorMapInterleave::b16, CU_TENSOR_MAP_INTERLEAVE_16B));
static_assert(same(TensorMapInterleave::b32, CU_TENSOR_MAP_INTERLEAVE_32B));
static_assert(same(SwizzleMode::none, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(same(SwizzleMode::b32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same(SwizzleMode::b64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same(SwizzleMode::b128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same(SwizzleMode::b128_atom_32, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B));
static_assert(same(SwizzleMode::b128_atom_32_flip_8, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B));
static_assert(same(SwizzleMode::b128_atom_64, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B));
static_assert(same(TensorMapL2Promotion::b64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B));
static_assert(same(TensorMapL2Promotion::b128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same(TensorMapL2Promotion::b256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
static_assert(same(TensorMapFill::zero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
static_assert(same(TensorMapFill::nan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA));

/// 100 rows of 64 bf16 elements, in boxes of 8 rows.
TensorMap plain_map() {
    TensorMap map;
    map.type = TensorMapType::bfloat16;
    map.rank = 2;
    map.address = 0x7000000000;
    map.dims = {64, 100, 1, 1, 1};
    map.byte_strides = {128, 0, 0, 0};
    map.box = {64, 8, 1, 1, 1};
    return map;
}

TensorMap map_3d() {
    TensorMap map = plain_map();
    map.rank = 3;
    map.dims[2] = 5;
    map.byte_strides[1] = 12800;
    return map;
}

TensorMap packed_map(TensorMapType type) {
    TensorMap map = plain_map();
    map.type = type;
    map.dims[0] = 128;
    map.box[0] = 128;
    return map;
}

using Edit = std::function<void(TensorMap&)>;

struct Case {
    Edit edit;
    std::string message;  // the whole of it, or empty if the map is accepted
};

void check_cases(const TensorMap& base, int architecture, const std::vector<Case>& cases) {
    REQUIRE(validate(base, architecture).empty());
    for (const Case& c : cases) {
        TensorMap map = base;
        c.edit(map);
        CHECK(validate(map, architecture) == c.message);
    }
}

TEST_CASE("validate agrees with cuTensorMapEncodeTiled on an H200, and names parameter, value and limit") {
    check_cases(
        plain_map(), 90,
        {
            {[](auto& m) { m.address += 8; }, "globalAddress is 0x7000000008: it must be a multiple of 16 bytes"},
            {[](auto& m) { m.address += 16; }, ""},
            {[](auto& m) { m.address = 0; }, ""},
            {[](auto& m) { m.byte_strides[0] = 264; }, "globalStrides[0] is 264 bytes: it must be a multiple of 16"},
            {[](auto& m) { m.byte_strides[0] = 1ULL << 40; },
             "globalStrides[0] is 1099511627776 bytes: it must be less than 2^40"},
            {[](auto& m) { m.byte_strides[0] = (1ULL << 40) - 16; }, ""},
            {[](auto& m) { m.byte_strides[0] = 0; }, ""},
            {[](auto& m) { m.byte_strides[0] = 16; }, ""},
            {[](auto& m) { m.box[1] = 0; }, "boxDim[1] is 0: it must be in 1..256"},
            {[](auto& m) { m.box[1] = 257; }, "boxDim[1] is 257: it must be in 1..256"},
            {[](auto& m) {
                 m.box = {256, 256, 1, 1, 1};
             },
             ""},
            {[](auto& m) { m.box[0] = 4; }, "boxDim[0] is 4 elements of 16 bits: that must be a multiple of 16 bytes"},
            {[](auto& m) { m.box[0] = 12; },
             "boxDim[0] is 12 elements of 16 bits: that must be a multiple of 16 bytes"},
            {[](auto& m) { m.dims[0] = 0; }, "globalDim[0] is 0: it must be in 1..2^32"},
            {[](auto& m) { m.dims[1] = (1ULL << 32) + 1; }, "globalDim[1] is 4294967297: it must be in 1..2^32"},
            {[](auto& m) { m.dims[1] = 1ULL << 32; }, ""},
            {[](auto& m) { m.dims[0] = 63; }, ""},
            {[](auto& m) {
                 m.dims = {8, 2, 1, 1, 1};
             },
             ""},
            {[](auto& m) { m.element_strides[1] = 0; }, "elementStrides[1] is 0: it must be in 1..8"},
            {[](auto& m) { m.element_strides[1] = 9; }, "elementStrides[1] is 9: it must be in 1..8"},
            {[](auto& m) { m.element_strides[1] = 8; }, ""},
            {[](auto& m) { m.element_strides[0] = 0; },
             "elementStrides[0] is 0: it must be in 1..8, although it has no effect"},
            {[](auto& m) { m.element_strides[0] = 9; },
             "elementStrides[0] is 9: it must be in 1..8, although it has no effect"},
            {[](auto& m) { m.element_strides[0] = 8; }, ""},
            {[](auto& m) { m.rank = 0; }, "tensorRank is 0: it must be in 1..5"},
            {[](auto& m) { m.rank = 6; }, "tensorRank is 6: it must be in 1..5"},
            {[](auto& m) { m.rank = 1; }, ""},
            {[](auto& m) { m.swizzle = static_cast<SwizzleMode>(7); },
             "swizzle is 7: the largest is 6 (128B_ATOM_64B)"},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_32; },
             "swizzle is 4 (128B with 32-byte atoms): sm_90 has only none, 32B, 64B and 128B"},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_32_flip_8; },
             "swizzle is 5 (128B with 32-byte atoms and 8-byte flip): sm_90 has only none, 32B, 64B and 128B"},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_64; },
             "swizzle is 6 (128B with 64-byte atoms): sm_90 has only none, 32B, 64B and 128B"},
            {[](auto& m) { m.swizzle = SwizzleMode::b128; }, ""},
            {[](auto& m) { m.swizzle = SwizzleMode::b128, m.box[0] = 72; },
             "boxDim[0] is 72 elements of 16 bits: with swizzle 128B the inner dimension must be at most 128 bytes"},
            {[](auto& m) { m.swizzle = SwizzleMode::b64; },
             "boxDim[0] is 64 elements of 16 bits: with swizzle 64B the inner dimension must be at most 64 bytes"},
            {[](auto& m) { m.swizzle = SwizzleMode::b32, m.box[0] = 24; },
             "boxDim[0] is 24 elements of 16 bits: with swizzle 32B the inner dimension must be at most 32 bytes"},
            {[](auto& m) { m.swizzle = SwizzleMode::b32, m.box[0] = 16; }, ""},
            {[](auto& m) { m.type = static_cast<TensorMapType>(16); }, "tensorDataType is 16: the largest is 15"},
            {[](auto& m) { m.type = TensorMapType::u4x16_align8; },
             "tensorDataType is 16u4_align8b: packed types need sm_100, this is sm_90"},
            {[](auto& m) { m.l2_promotion = static_cast<TensorMapL2Promotion>(4); },
             "l2Promotion is 4: the largest is 3 (L2_256B)"},
            {[](auto& m) { m.l2_promotion = TensorMapL2Promotion::b256; }, ""},
            {[](auto& m) { m.fill = static_cast<TensorMapFill>(2); },
             "oobFill is 2: the largest is 1 (NAN_REQUEST_ZERO_FMA)"},
            {[](auto& m) { m.fill = TensorMapFill::nan; }, ""},
            {[](auto& m) { m.fill = TensorMapFill::nan, m.type = TensorMapType::uint16; },
             "oobFill is NaN: tensorDataType uint16 is no floating-point type that has it"},
            {[](auto& m) { m.interleave = static_cast<TensorMapInterleave>(3); },
             "interleave is 3: the largest is 2 (32B)"},
            {[](auto& m) { m.interleave = TensorMapInterleave::b16; },
             "tensorRank is 2: an interleaved layout needs at least 3"},
        });
}

TEST_CASE("validate limits a box to the shared memory of a multiprocessor") {
    const std::string limit = "it must be at most 233472, the shared memory of a multiprocessor";
    check_cases(map_3d(), 90,
                {
                    {[](auto& m) {
                         m.box = {256, 228, 2, 1, 1};
                     },
                     ""},
                    {[&](auto& m) {
                         m.box = {256, 256, 2, 1, 1};
                     },
                     "boxDim makes a box of 262144 bytes: " + limit},
                    {[](auto& m) {
                         m.box = {256, 256, 8, 1, 1}, m.element_strides = {1, 8, 8, 1, 1};
                     },
                     ""},
                    // A swizzle's gaps do not count.
                    {[](auto& m) {
                         m.box = {8, 256, 8, 1, 1}, m.swizzle = SwizzleMode::b128;
                     },
                     ""},
                });
}

TEST_CASE("validate knows the documented rules of interleaved layouts") {
    check_cases(
        map_3d(), 90,
        {
            {[](auto& m) { m.interleave = TensorMapInterleave::b16; }, ""},
            {[](auto& m) { m.interleave = TensorMapInterleave::b32, m.swizzle = SwizzleMode::b32; }, ""},
            {[](auto& m) { m.interleave = TensorMapInterleave::b32; }, "swizzle is none: 32-byte interleave needs 32B"},
            {[](auto& m) { m.interleave = TensorMapInterleave::b32, m.swizzle = SwizzleMode::b32, m.address += 16; },
             "globalAddress is 0x7000000010: it must be a multiple of 32 bytes with 32-byte interleave or a "
             "16-byte aligned packed type"},
            {[](auto& m) {
                 m.interleave = TensorMapInterleave::b32, m.swizzle = SwizzleMode::b32, m.byte_strides[0] = 144;
             },
             "globalStrides[0] is 144 bytes: it must be a multiple of 32 with 32-byte interleave or a 16-byte "
             "aligned packed type"},
        });
}

TEST_CASE("validate knows the documented rules of sm_100") {
    check_cases(
        plain_map(), 100,
        {
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_32; }, ""},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_64; }, ""},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_32_flip_8; }, ""},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_32_flip_8, m.box[0] = 128; },
             "boxDim[0] is 128 elements of 16 bits: with swizzle 128B with 32-byte atoms and 8-byte flip the inner "
             "dimension must be at most 128 bytes"},
        });
    check_cases(packed_map(TensorMapType::u4x16_align8), 100,
                {
                    {[](auto& m) { m.dims[0] = 127; }, "globalDim[0] is 127: 16u4_align8b needs a multiple of 2"},
                    {[](auto& m) { m.dims[0] = 130; }, ""},
                    {[](auto& m) { m.fill = TensorMapFill::nan; },
                     "oobFill is NaN: tensorDataType 16u4_align8b is no floating-point type that has it"},
                });
    check_cases(packed_map(TensorMapType::u4x16_align16), 100,
                {
                    {[](auto& m) { m.dims[0] = 130; }, "globalDim[0] is 130: 16u4_align16b needs a multiple of 128"},
                    {[](auto& m) { m.box[0] = 64; }, "boxDim[0] is 64: 16u4_align16b needs 128"},
                    {[](auto& m) { m.swizzle = SwizzleMode::b64; }, "swizzle is 64B: 16u4_align16b does not allow it"},
                    {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_64; },
                     "swizzle is 128B with 64-byte atoms: 16u4_align16b does not allow it"},
                    {[](auto& m) { m.address += 16; },
                     "globalAddress is 0x7000000010: it must be a multiple of 32 bytes with 32-byte interleave or a "
                     "16-byte aligned packed type"},
                });
    TensorMap six_bits = map_3d();
    six_bits.type = TensorMapType::u6x16_align16;
    six_bits.dims[0] = 128;
    six_bits.box[0] = 128;
    check_cases(
        six_bits, 100,
        {
            {[](auto& m) { m.interleave = TensorMapInterleave::b16; }, "interleave is 1: 16u6_align16b needs none"},
            {[](auto& m) { m.swizzle = SwizzleMode::b128_atom_64; }, ""},
        });
}

TEST_CASE("what the simulator does not model is refused by name") {
    CHECK(unsupported(plain_map()).empty());
    TensorMap map = map_3d();
    map.interleave = TensorMapInterleave::b16;
    CHECK(unsupported(map) == "interleaved tensor maps are not modelled: encode the map without interleave");
    map = packed_map(TensorMapType::u6x16_align16);
    CHECK(unsupported(map) == "tensor maps of type 16u6_align16b are not modelled: copy the packed bytes as uint8");
    map = plain_map();
    map.swizzle = SwizzleMode::b128_atom_32_flip_8;
    CHECK(unsupported(map) ==
          "swizzle 128B with 32-byte atoms and 8-byte flip is not modelled: no text says which lines it flips");
}

TEST_CASE("every type has its size") {
    for (std::uint32_t i = 0; i < 13; ++i) {
        const auto type = static_cast<TensorMapType>(i);
        const std::string name(name_of(type));
        const bool eight = name.ends_with("64");
        const bool two = name.ends_with("16");
        CHECK(element_bits(type) == (name == "uint8" ? 8U : eight ? 64U : two ? 16U : 32U));
        CHECK(is_floating(type) == (name.find("float") != std::string::npos));
    }
}

TensorMap random_map(std::mt19937_64& random) {
    const auto up_to = [&](std::uint64_t limit) { return random() % limit; };
    TensorMap map;
    map.type = static_cast<TensorMapType>(up_to(16));
    map.rank = static_cast<std::uint32_t>(1 + up_to(5));
    map.address = random();
    for (auto& dim : map.dims) dim = 1 + up_to(1ULL << 32);
    map.dims[0] = 1ULL << 32;
    for (auto& stride : map.byte_strides) stride = up_to(1ULL << 40);
    for (auto& extent : map.box) extent = static_cast<std::uint32_t>(1 + up_to(256));
    for (auto& stride : map.element_strides) stride = static_cast<std::uint32_t>(1 + up_to(8));
    map.interleave = static_cast<TensorMapInterleave>(up_to(3));
    map.swizzle = static_cast<SwizzleMode>(up_to(7));
    map.l2_promotion = static_cast<TensorMapL2Promotion>(up_to(4));
    map.fill = static_cast<TensorMapFill>(up_to(2));
    return map;
}

TEST_CASE("a map survives its 128 bytes") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; ++i) {
        const TensorMap map = random_map(random);
        const auto back = decode_tensor_map(encode_tensor_map(map));
        REQUIRE(std::holds_alternative<TensorMap>(back));
        CHECK(std::get<TensorMap>(back) == map);
    }
}

TEST_CASE("bytes that are no map are recognised") {
    const auto error_of = [](const TensorMapBytes& bytes) {
        const auto result = decode_tensor_map(bytes);
        return std::holds_alternative<std::string>(result) ? std::get<std::string>(result) : std::string{};
    };
    CHECK(error_of(TensorMapBytes{}).starts_with("the 128 bytes are not a tensor map"));
    std::mt19937_64 random(2);
    TensorMapBytes noise{};
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    CHECK(error_of(noise).starts_with("the 128 bytes are not a tensor map"));

    const TensorMapBytes good = encode_tensor_map(plain_map());
    CHECK(error_of(good).empty());
    for (std::size_t bit = 0; bit < 8 * kTensorMapBytes; ++bit) {
        TensorMapBytes bad = good;
        bad[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        const std::string error = error_of(bad);
        CHECK(error.starts_with(bit < 64 ? "the 128 bytes are not a tensor map"
                                         : "the 128 bytes of the tensor map were changed"));
    }
}

}  // namespace
}  // namespace block_attention::simulator
