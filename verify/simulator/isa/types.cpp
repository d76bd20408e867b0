#include "verify/simulator/isa/types.h"

#include <algorithm>
#include <array>

namespace block_attention::simulator {

namespace {

enum class Kind : std::uint8_t { predicate, bits, unsigned_, signed_, floating };

struct Description {
    std::string_view name;
    Type type;
    unsigned bits;
    Kind kind;
};

constexpr std::array kTypes{
    Description{"pred", Type::pred, 1, Kind::predicate},     Description{"b8", Type::b8, 8, Kind::bits},
    Description{"b16", Type::b16, 16, Kind::bits},           Description{"b32", Type::b32, 32, Kind::bits},
    Description{"b64", Type::b64, 64, Kind::bits},           Description{"b128", Type::b128, 128, Kind::bits},
    Description{"u8", Type::u8, 8, Kind::unsigned_},         Description{"u16", Type::u16, 16, Kind::unsigned_},
    Description{"u32", Type::u32, 32, Kind::unsigned_},      Description{"u64", Type::u64, 64, Kind::unsigned_},
    Description{"s8", Type::s8, 8, Kind::signed_},           Description{"s16", Type::s16, 16, Kind::signed_},
    Description{"s32", Type::s32, 32, Kind::signed_},        Description{"s64", Type::s64, 64, Kind::signed_},
    Description{"f16", Type::f16, 16, Kind::floating},       Description{"bf16", Type::bf16, 16, Kind::floating},
    Description{"tf32", Type::tf32, 32, Kind::floating},     Description{"f32", Type::f32, 32, Kind::floating},
    Description{"f64", Type::f64, 64, Kind::floating},       Description{"u16x2", Type::u16x2, 32, Kind::unsigned_},
    Description{"s16x2", Type::s16x2, 32, Kind::signed_},    Description{"f16x2", Type::f16x2, 32, Kind::floating},
    Description{"bf16x2", Type::bf16x2, 32, Kind::floating}, Description{"f32x2", Type::f32x2, 64, Kind::floating},
};

const Description& describe(Type type) { return *std::ranges::find(kTypes, type, &Description::type); }

}  // namespace

std::optional<Type> parse_type(std::string_view modifier) {
    const auto* found = std::ranges::find(kTypes, modifier, &Description::name);
    if (found == kTypes.end()) return std::nullopt;
    return found->type;
}

unsigned bits_of(Type type) { return describe(type).bits; }
bool is_signed(Type type) { return describe(type).kind == Kind::signed_; }
bool is_unsigned(Type type) { return describe(type).kind == Kind::unsigned_; }
bool is_float(Type type) { return describe(type).kind == Kind::floating; }
bool is_bits(Type type) { return describe(type).kind == Kind::bits; }

}  // namespace block_attention::simulator
