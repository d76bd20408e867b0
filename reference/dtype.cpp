#include "reference/dtype.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace block_attention {
namespace {

struct DTypeFacts {
    std::string_view name;
    int size;
    Format format;
};

constexpr std::array<DTypeFacts, 3> kFacts{{
    {"fp16", 2, {11, -14, 15}},
    {"bf16", 2, {8, -126, 127}},
    {"fp32", 4, {24, -126, 127}},
}};

const DTypeFacts& facts_of(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)]; }

template <typename T>
T load_as(const void* data) {
    T value;
    std::memcpy(&value, data, sizeof(T));
    return value;
}

template <typename T>
void store_as(void* data, double value) {
    const T element(static_cast<float>(value));  // exact: the value is a number of the type, hence of float
    std::memcpy(data, &element, sizeof(T));
}

}  // namespace

int size_of(DType dtype) { return facts_of(dtype).size; }

std::string_view name_of(DType dtype) { return facts_of(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
    for (std::size_t i = 0; i < kFacts.size(); ++i) {
        if (kFacts[i].name == name) return static_cast<DType>(i);
    }
    return std::nullopt;
}

Format format_of(DType dtype) { return facts_of(dtype).format; }

double round_to(DType dtype, double value) {
    if (!std::isfinite(value) || value == 0) return value;
    const Format format = format_of(dtype);
    const int exponent = std::max(std::ilogb(value), format.min_exponent);
    const int unit = exponent - (format.significand_bits - 1);  // the last place's exponent; fixed below the normals
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
    const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - format.significand_bits), format.max_exponent);
    return std::abs(rounded) > largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

double load_element(DType dtype, const void* data) {
    switch (dtype) {
        case DType::fp16:
            return static_cast<double>(load_as<Eigen::half>(data));
        case DType::bf16:
            return static_cast<double>(load_as<Eigen::bfloat16>(data));
        case DType::fp32:
            return static_cast<double>(load_as<float>(data));
    }
    return std::numeric_limits<double>::quiet_NaN();
}

void store_element(DType dtype, void* data, double value) {
    switch (dtype) {
        case DType::fp16:
            return store_as<Eigen::half>(data, value);
        case DType::bf16:
            return store_as<Eigen::bfloat16>(data, value);
        case DType::fp32:
            return store_as<float>(data, value);
    }
}

}  // namespace block_attention
