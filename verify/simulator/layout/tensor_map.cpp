#include "verify/simulator/layout/tensor_map.h"

namespace block_attention::simulator {
namespace {

struct TypeFacts {
    std::string_view name;
    std::uint32_t bits;
    bool floating;
};

constexpr std::array<TypeFacts, 16> kTypes{{
    {"uint8", 8, false},
    {"uint16", 16, false},
    {"uint32", 32, false},
    {"int32", 32, false},
    {"uint64", 64, false},
    {"int64", 64, false},
    {"float16", 16, true},
    {"float32", 32, true},
    {"float64", 64, true},
    {"bfloat16", 16, true},
    {"float32_ftz", 32, true},
    {"tfloat32", 32, true},
    {"tfloat32_ftz", 32, true},
    {"16u4_align8b", 4, false},
    {"16u4_align16b", 4, false},
    {"16u6_align16b", 6, false},
}};

const TypeFacts& facts_of(TensorMapType type) { return kTypes.at(static_cast<std::size_t>(type)); }

constexpr std::uint64_t kMagic = 0x70614d726f736e54;  // "TnsorMap" in memory
constexpr std::size_t kChecksumOffset = kTensorMapBytes - sizeof(std::uint64_t);

/// FNV-1a over everything before the checksum.
std::uint64_t checksum_of(std::span<const std::byte, kTensorMapBytes> bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::byte byte : bytes.first<kChecksumOffset>()) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
    }
    return hash;
}

/// Writes unsigned integers one after the other, lowest byte first.
class Writer {
  public:
    explicit Writer(TensorMapBytes& bytes) : bytes_(bytes) {}

    void put(std::uint64_t value, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) bytes_[offset_++] = static_cast<std::byte>(value >> (8 * i));
    }
    void skip_to(std::size_t offset) { offset_ = offset; }

  private:
    TensorMapBytes& bytes_;
    std::size_t offset_ = 0;
};

class Reader {
  public:
    explicit Reader(std::span<const std::byte, kTensorMapBytes> bytes) : bytes_(bytes) {}

    std::uint64_t take(std::size_t size) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes_[offset_++]) << (8 * i);
        return value;
    }
    void skip_to(std::size_t offset) { offset_ = offset; }

  private:
    std::span<const std::byte, kTensorMapBytes> bytes_;
    std::size_t offset_ = 0;
};

}  // namespace

std::string_view name_of(TensorMapType type) { return facts_of(type).name; }

std::uint32_t element_bits(TensorMapType type) { return facts_of(type).bits; }

bool is_floating(TensorMapType type) { return facts_of(type).floating; }

// Bytes 0-7 the magic number, 8-13 the enumerations and the rank, 14-21 the address, 22-41 dims - 1, 42-73 the byte
// strides, 74-93 the box, 94-113 the element strides, 120-127 the checksum.
TensorMapBytes encode_tensor_map(const TensorMap& map) {
    TensorMapBytes bytes{};
    Writer writer(bytes);
    writer.put(kMagic, 8);
    writer.put(static_cast<std::uint64_t>(map.type), 1);
    writer.put(map.rank, 1);
    writer.put(static_cast<std::uint64_t>(map.interleave), 1);
    writer.put(static_cast<std::uint64_t>(map.swizzle), 1);
    writer.put(static_cast<std::uint64_t>(map.l2_promotion), 1);
    writer.put(static_cast<std::uint64_t>(map.fill), 1);
    writer.put(map.address, 8);
    for (const std::uint64_t dim : map.dims) writer.put(dim - 1, 4);  // 1..2^32 in 32 bits
    for (const std::uint64_t stride : map.byte_strides) writer.put(stride, 8);
    for (const std::uint32_t extent : map.box) writer.put(extent, 4);
    for (const std::uint32_t stride : map.element_strides) writer.put(stride, 4);
    writer.skip_to(kChecksumOffset);
    writer.put(checksum_of(bytes), 8);
    return bytes;
}

std::variant<TensorMap, std::string> decode_tensor_map(std::span<const std::byte, kTensorMapBytes> bytes) {
    Reader reader(bytes);
    if (reader.take(8) != kMagic) {
        return "the 128 bytes are not a tensor map: pass one that this device encoded, as a const __grid_constant__ "
               "CUtensorMap parameter, in constant memory or in global memory";
    }
    TensorMap map;
    map.type = static_cast<TensorMapType>(reader.take(1));
    map.rank = static_cast<std::uint32_t>(reader.take(1));
    map.interleave = static_cast<TensorMapInterleave>(reader.take(1));
    map.swizzle = static_cast<SwizzleMode>(reader.take(1));
    map.l2_promotion = static_cast<TensorMapL2Promotion>(reader.take(1));
    map.fill = static_cast<TensorMapFill>(reader.take(1));
    map.address = reader.take(8);
    for (std::uint64_t& dim : map.dims) dim = reader.take(4) + 1;
    for (std::uint64_t& stride : map.byte_strides) stride = reader.take(8);
    for (std::uint32_t& extent : map.box) extent = static_cast<std::uint32_t>(reader.take(4));
    for (std::uint32_t& stride : map.element_strides) stride = static_cast<std::uint32_t>(reader.take(4));
    reader.skip_to(kChecksumOffset);
    if (reader.take(8) != checksum_of(bytes)) {
        return "the 128 bytes of the tensor map were changed after it was encoded: a map is opaque, only "
               "tensormap.replace may edit it";
    }
    return map;
}

}  // namespace block_attention::simulator
