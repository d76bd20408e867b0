#include "verify/ptx_command/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "verify/ptx_command/element.h"

namespace block_attention {
namespace {

const std::vector<std::string>& keys() {
    static const std::vector<std::string> kKeys = [] {
        std::vector<std::string> list(array_keys().begin(), array_keys().end());
        list.emplace_back("absolute");
        list.emplace_back("relative");
        return list;
    }();
    return kKeys;
}

double read_tolerance(const JsonValue& object, const std::string& key) {
    const auto value = object.find(key);
    if (!value) return 0;
    const double tolerance = value->number();
    if (tolerance < 0) value->fail("a tolerance is not negative");
    return tolerance;
}

Expectation read_expectation(const JsonValue& object, std::size_t number, const BufferSpec& buffer,
                             const std::filesystem::path& folder) {
    object.allow(keys());
    Expectation expectation;
    expectation.buffer = number;
    if (object.find("absolute") || object.find("relative")) {
        expectation.tolerance = {read_tolerance(object, "absolute"), read_tolerance(object, "relative")};
    }
    expectation.array = read_array(object, folder, &buffer.array);
    const ArraySpec& array = expectation.array;
    if (array.content.kind == Content::Kind::poison) {
        object.at("content").fail("poison cannot be expected: it is what was never written");
    }
    const bool is_random = array.content.kind >= Content::Kind::normal && array.content.kind <= Content::Kind::integers;
    if (is_random && !array.content.seed) {
        object.fail(
            "random content needs a \"seed\" here: a buffer with the same seed and content then holds the same");
    }
    if (array.shape != buffer.array.shape || (!expectation.tolerance && array.type != buffer.array.type)) {
        object.fail(fmt::format("expected is {}, but the buffer is {}{}", describe_array(array.type, array.shape),
                                describe_array(buffer.array.type, buffer.array.shape),
                                expectation.tolerance ? "" : "; give a tolerance to compare other types"));
    }
    return expectation;
}

bool agree(long double computed, long double expected, const Expectation::Tolerance& tolerance) {
    if (std::isnan(computed) || std::isnan(expected)) return std::isnan(computed) && std::isnan(expected);
    if (std::isinf(computed) || std::isinf(expected)) return computed == expected;
    return std::abs(computed - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

}  // namespace

std::vector<Expectation> read_expectations(const JsonValue& object, const std::vector<BufferSpec>& buffers,
                                           const std::filesystem::path& folder) {
    std::vector<Expectation> expectations;
    for (const auto& [name, value] : object.members()) {
        const std::size_t number = find_buffer(object, name, buffers);
        expectations.push_back(read_expectation(value, number, buffers[number], folder));
    }
    return expectations;
}

Agreement compare(const Expectation& expectation, const BufferSpec& buffer, std::span<const std::byte> computed,
                  std::span<const std::byte> expected) {
    const ElementType type = buffer.array.type;
    const ElementType expected_type = expectation.array.type;
    const std::size_t size = size_of(type);
    const std::size_t expected_size = size_of(expected_type);
    Agreement agreement;
    agreement.buffer = expectation.buffer;
    agreement.elements = buffer.array.elements;
    std::int64_t first = -1;
    for (std::int64_t i = 0; i < agreement.elements; ++i) {
        const std::byte* c = computed.data() + static_cast<std::size_t>(i) * size;
        const std::byte* e = expected.data() + static_cast<std::size_t>(i) * expected_size;
        bool right = false;
        if (expectation.tolerance) {
            const long double value = load_element(type, c);
            const long double wanted = load_element(expected_type, e);
            right = agree(value, wanted, *expectation.tolerance);
            if (std::isfinite(value) && std::isfinite(wanted)) {
                const auto difference = static_cast<double>(std::abs(value - wanted));
                agreement.largest_difference = std::max(agreement.largest_difference, difference);
            }
        } else {
            right = std::memcmp(c, e, size) == 0;
        }
        if (right) continue;
        if (agreement.wrong++ == 0) first = i;
    }
    if (first >= 0) {
        const std::byte* c = computed.data() + static_cast<std::size_t>(first) * size;
        const std::byte* e = expected.data() + static_cast<std::size_t>(first) * expected_size;
        agreement.first_wrong =
            fmt::format("{}: computed {} ({}), expected {} ({})", element_name(buffer, first), decimal_of(type, c),
                        bits_of(type, c), decimal_of(expected_type, e), bits_of(expected_type, e));
    }
    return agreement;
}

std::string element_name(const BufferSpec& buffer, std::int64_t number) {
    std::vector<std::int64_t> indices(buffer.array.shape.size());
    for (std::size_t i = indices.size(); i-- > 0;) {
        indices[i] = number % buffer.array.shape[i];
        number /= buffer.array.shape[i];
    }
    return fmt::format("{}[{}]", buffer.name, fmt::join(indices, ", "));
}

}  // namespace block_attention
