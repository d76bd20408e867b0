#include "verify/io/tensor_file.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "reference/parallel.h"
#include "reference/tiles.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

constexpr std::int64_t kDefaultBlock = 64;
constexpr std::array<std::pair<std::string_view, DType>, 3> kTypes{
    {{"F16", DType::fp16}, {"BF16", DType::bf16}, {"F32", DType::fp32}}};

[[noreturn]] void fail(const SafetensorsFile& file, std::string_view fault) {
    throw UsageError(fmt::format("{}: {}", file.path().string(), fault));
}

DType element_type(const SafetensorsFile& file, std::string_view name) {
    const std::string& dtype = file.at(name).dtype;
    for (const auto& [type, value] : kTypes) {
        if (type == dtype) return value;
    }
    fail(file, fmt::format("the tensor {} is {}; q, k and v must be F16, BF16 or F32", name, dtype));
}

void check_alike(const SafetensorsFile& file) {
    const SafetensorsEntry& q = file.at("q");
    for (const std::string_view name : {"k", "v"}) {
        const SafetensorsEntry& other = file.at(name);
        if (other.dtype != q.dtype) {
            fail(file, fmt::format("q is {}, but {} is {}; they must be alike", q.dtype, name, other.dtype));
        }
        if (other.shape != q.shape) {
            fail(file, fmt::format("q has the shape {}, but {} has {}; they must be alike", shape_text(q.shape), name,
                                   shape_text(other.shape)));
        }
    }
}

std::int64_t block_size(SafetensorsFile& file) {
    if (file.find("block_size") != nullptr) {
        const auto values = file.read_integers("block_size");
        if (values.size() != 1) {
            fail(file, fmt::format("the tensor block_size holds {} integers; it must hold one", values.size()));
        }
        return values.front();
    }
    const auto found = file.metadata().find("block_size");
    if (found == file.metadata().end()) return kDefaultBlock;
    const std::string& text = found->second;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        fail(file, fmt::format("the metadata's block_size \"{}\" is not an integer", text));
    }
    return value;
}

void set_sizes(SafetensorsFile& file, Problem& problem) {
    const std::vector<std::int64_t>& shape = file.at("q").shape;
    const bool has_offsets = file.find("offsets") != nullptr;
    if (shape.size() == 4 && !has_offsets) {
        problem.sequences = shape[0];
        problem.heads = shape[1];
        problem.tokens = shape[2];
        problem.head_dim = shape[3];
    } else if (shape.size() == 3 && has_offsets) {
        const SafetensorsEntry& offsets = file.at("offsets");
        if (offsets.shape.size() != 1 || offsets.shape[0] < 1) {
            fail(file, fmt::format("offsets has the shape {}; it must be [batch + 1]", shape_text(offsets.shape)));
        }
        problem.offsets = file.read_integers("offsets");
        problem.sequences = static_cast<std::int64_t>(problem.offsets.size()) - 1;
        problem.tokens = shape[0];
        problem.heads = shape[1];
        problem.head_dim = shape[2];
    } else {
        fail(file,
             fmt::format("q has the shape {} and there {} a tensor offsets; take [batch, heads, seq, dim] without, or "
                         "jagged [tokens, heads, dim] with it",
                         shape_text(shape), has_offsets ? "is" : "isn't"));
    }
}

}  // namespace

Tensors load_tensor_file(const std::filesystem::path& path, std::optional<std::int64_t> block) {
    SafetensorsFile file(path);
    Problem problem;
    problem.dtype = element_type(file, "q");
    check_alike(file);
    set_sizes(file, problem);
    problem.block_size = block ? *block : block_size(file);
    problem.scale =
        file.find("scale") != nullptr ? static_cast<float>(file.read_number("scale")) : default_scale(problem.head_dim);
    for (const Operand operand : {Operand::q, Operand::k, Operand::v, Operand::o}) {
        TensorView& view = problem.view(operand);
        view.dtype = problem.dtype;
        view.strides = problem.jagged() ? strides_thd(problem.heads, problem.head_dim)
                                        : strides_bhsd(problem.heads, problem.tokens, problem.head_dim);
    }
    try {
        Tensors tensors(std::move(problem));
        for (const Operand operand : tensors.problem().inputs()) {
            file.read(file.at(name_of(operand)), tensors.span(operand));
            tensors.poison_surroundings(operand);
        }
        return tensors;
    } catch (const UsageError& error) {
        fail(file, error.what());
    }
}

NamedTensor dense_output(const Tensors& tensors, std::string name) {
    const Problem& problem = tensors.problem();
    const Strides dense = problem.jagged() ? strides_thd(problem.heads, problem.head_dim)
                                           : strides_bhsd(problem.heads, problem.tokens, problem.head_dim);
    NamedTensor tensor{.name = std::move(name), .dtype = {}, .shape = {}, .bytes = {}};
    for (const auto& [type, dtype] : kTypes) {
        if (dtype == problem.dtype) tensor.dtype = type;
    }
    tensor.shape = {problem.sequences, problem.heads, problem.tokens, problem.head_dim};
    if (problem.jagged()) tensor.shape = {problem.tokens, problem.heads, problem.head_dim};
    const auto size = static_cast<std::size_t>(size_of(problem.dtype));
    std::size_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
    tensor.bytes.resize(elements * size);
    const TensorView to{.data = tensor.bytes.data(), .dtype = problem.dtype, .strides = dense};
    const std::vector<Tile> tiles = list_tiles(problem);
    parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i)];
        for (std::int64_t h = 0; h < problem.heads; ++h) {
            for (std::int64_t t = tile.first_row; t < tile.first_row + tile.length; ++t) {
                for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                    std::memcpy(to.at(tile.sequence, h, t, d), problem.o.at(tile.sequence, h, t, d), size);
                }
            }
        }
    });
    return tensor;
}

}  // namespace block_attention
