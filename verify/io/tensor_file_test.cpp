#include "verify/io/tensor_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "reference/oracle.h"
#include "verify/io/temporary_folder.h"
#include "verify/storage_check.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using testing::TemporaryFolder;

template <typename T>
NamedTensor tensor(std::string name, std::string dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {std::move(name), std::move(dtype), std::move(shape), {bytes.begin(), bytes.end()}};
}

/// fp32 elements 0, 1, 2, ...
NamedTensor counting(std::string name, const std::vector<std::int64_t>& shape) {
    std::size_t elements = 1;
    for (const std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i);
    return tensor(std::move(name), "F32", shape, values);
}

std::vector<NamedTensor> qkv(const std::vector<std::int64_t>& shape) {
    return {counting("q", shape), counting("k", shape), counting("v", shape)};
}

using Metadata = std::map<std::string, std::string, std::less<>>;

Tensors load(const std::vector<NamedTensor>& tensors, std::optional<std::int64_t> block = {},
             const Metadata& metadata = {}) {
    const TemporaryFolder folder;
    std::ofstream stream(folder / "x", std::ios::binary);
    write_safetensors(stream, tensors, metadata);
    stream.close();
    return load_tensor_file(folder / "x", block);
}

std::string error_of(const std::vector<NamedTensor>& tensors, std::optional<std::int64_t> block = {},
                     const Metadata& metadata = {}) {
    try {
        load(tensors, block, metadata);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("a uniform file becomes a problem") {
    const Tensors tensors = load(qkv({2, 3, 5, 4}));
    const Problem& problem = tensors.problem();
    CHECK(problem.dtype == DType::fp32);
    CHECK(problem.sequences == 2);
    CHECK(problem.heads == 3);
    CHECK(problem.tokens == 5);
    CHECK(problem.head_dim == 4);
    CHECK(problem.block_size == 64);
    CHECK(problem.scale == default_scale(4));
    CHECK(load_element(DType::fp32, problem.k.at(1, 2, 3, 1)) == ((1 * 3 + 2) * 5 + 3) * 4 + 1);
}

TEST_CASE("a jagged file becomes a problem, and rows outside every tile are poisoned") {
    auto tensors_in = qkv({7, 2, 4});
    tensors_in.push_back(tensor<std::int32_t>("offsets", "I32", {4}, {0, 3, 3, 5}));
    tensors_in.push_back(tensor<float>("scale", "F32", {}, {0.25F}));
    tensors_in.push_back(tensor<std::int64_t>("block_size", "I64", {1}, {2}));
    const Tensors tensors = load(tensors_in);
    const Problem& problem = tensors.problem();
    CHECK(problem.sequences == 3);
    CHECK(problem.tokens == 7);
    CHECK(problem.offsets == std::vector<std::int64_t>{0, 3, 3, 5});
    CHECK(problem.scale == 0.25F);
    CHECK(problem.block_size == 2);
    CHECK(load_element(DType::fp32, problem.v.at(0, 1, 4, 2)) == (4 * 2 + 1) * 4 + 2);
    const auto* outside = static_cast<const std::byte*>(problem.v.at(0, 0, 5, 0));
    CHECK(std::all_of(outside, outside + std::ptrdiff_t{2} * 2 * 4 * 4, [](std::byte b) { return b == kPoison; }));
}

TEST_CASE("the block size: argument, tensor, metadata, default") {
    auto with_tensor = qkv({1, 1, 4, 4});
    with_tensor.push_back(tensor<std::int32_t>("block_size", "I32", {}, {8}));
    CHECK(load(with_tensor, 16, {{"block_size", "32"}}).problem().block_size == 16);
    CHECK(load(with_tensor, {}, {{"block_size", "32"}}).problem().block_size == 8);
    CHECK(load(qkv({1, 1, 4, 4}), {}, {{"block_size", "32"}}).problem().block_size == 32);
    CHECK(load(qkv({1, 1, 4, 4})).problem().block_size == 64);
    CHECK(contains(error_of(qkv({1, 1, 4, 4}), {}, {{"block_size", "32x"}}), "block_size \"32x\" is not an integer"));
    CHECK(contains(error_of(qkv({1, 1, 4, 4}), {}, {{"block_size", "0"}}), "the block size is 0"));
}

TEST_CASE("a file that does not fit is refused with its fault") {
    auto missing = qkv({1, 1, 4, 4});
    missing.pop_back();
    CHECK(contains(error_of(missing), "there is no tensor v; it holds k, q"));

    auto mismatched = qkv({1, 1, 4, 4});
    mismatched[1] = counting("k", {1, 1, 5, 4});
    CHECK(contains(error_of(mismatched), "q has the shape [1, 1, 4, 4], but k has [1, 1, 5, 4]; they must be alike"));

    auto mistyped = qkv({1, 1, 4, 4});
    mistyped[2] = tensor<double>("v", "F64", {1, 1, 4, 4}, std::vector<double>(16));
    CHECK(contains(error_of(mistyped), "q is F32, but v is F64; they must be alike"));
    for (auto& each : mistyped) each = tensor<double>(each.name, "F64", {1, 1, 4, 4}, std::vector<double>(16));
    CHECK(contains(error_of(mistyped), "the tensor q is F64; q, k and v must be F16, BF16 or F32"));

    CHECK(contains(error_of(qkv({4, 2, 4})), "q has the shape [4, 2, 4] and there isn't a tensor offsets"));
    CHECK(contains(error_of(qkv({4, 4})), "q has the shape [4, 4]"));
    auto both = qkv({1, 1, 4, 4});
    both.push_back(tensor<std::int32_t>("offsets", "I32", {2}, {0, 4}));
    CHECK(contains(error_of(both), "and there is a tensor offsets"));
    CHECK(contains(error_of(qkv({1, 1, 4, 0})), "the head dim is 0"));
}

TEST_CASE("offsets and scale that do not fit are refused") {
    const auto with = [](NamedTensor extra) {
        auto tensors = qkv({4, 2, 4});
        tensors.push_back(std::move(extra));
        return tensors;
    };
    CHECK(contains(error_of(with(tensor<float>("offsets", "F32", {2}, {0, 4}))),
                   "the tensor offsets is F32; integers are"));
    CHECK(contains(error_of(with(tensor<std::int32_t>("offsets", "I32", {1, 2}, {0, 4}))),
                   "offsets has the shape [1, 2]"));
    CHECK(contains(error_of(with(tensor<std::int32_t>("offsets", "I32", {0}, {}))), "offsets has the shape [0]"));
    CHECK(contains(error_of(with(tensor<std::int32_t>("offsets", "I32", {2}, {0, 5}))), "the last offset is 5"));
    CHECK(contains(error_of(with(tensor<std::int32_t>("offsets", "I32", {2}, {0, -5}))), "offsets[1] is -5"));
    CHECK(contains(error_of(with(tensor<std::int32_t>("offsets", "I32", {2}, {1, 4}))), "offsets[0] is 1"));
    auto scaled = qkv({1, 1, 4, 4});
    scaled.push_back(tensor<float>("scale", "F32", {1}, {std::numeric_limits<float>::quiet_NaN()}));
    CHECK(contains(error_of(scaled), "the scale is nan"));
}

TEST_CASE("the output is dense, and zero outside every tile") {
    auto tensors_in = qkv({5, 2, 4});
    tensors_in.push_back(tensor<std::int32_t>("offsets", "I32", {2}, {0, 3}));
    const Tensors tensors = load(tensors_in);
    tensors.poison(Operand::o);
    run_oracle(tensors.problem());
    const NamedTensor output = dense_output(tensors, "o.oracle.host");
    CHECK(output.name == "o.oracle.host");
    CHECK(output.dtype == "F32");
    CHECK(output.shape == std::vector<std::int64_t>{5, 2, 4});
    CHECK(output.bytes.size() == 5 * 2 * 4 * 4);
    const auto element = [&](std::int64_t t, std::int64_t h, std::int64_t d) {
        return load_element(DType::fp32, output.bytes.data() + ((t * 2 + h) * 4 + d) * 4);
    };
    CHECK(element(2, 1, 3) == load_element(DType::fp32, tensors.problem().o.at(0, 1, 2, 3)));
    CHECK(element(2, 1, 3) > 0);
    CHECK(element(3, 0, 0) == 0);
    CHECK(element(4, 1, 3) == 0);
}

}  // namespace
}  // namespace block_attention
