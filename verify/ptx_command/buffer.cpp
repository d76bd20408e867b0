#include "verify/ptx_command/buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/ptx_command/memory_limit.h"
#include "verify/suggest.h"

namespace block_attention {

std::vector<BufferSpec> read_buffers(const JsonValue& object, const std::filesystem::path& folder) {
    std::vector<BufferSpec> buffers;
    std::uint64_t bytes = 0;
    for (const auto& [name, value] : object.members()) {
        value.allow(array_keys());
        buffers.push_back({name, read_array(value, folder)});
        bytes += buffers.back().array.bytes();
        if (bytes > memory_limit()) {
            value.fail(
                fmt::format("the buffers up to this one take {:.1f} GiB, more than the {:.1f} GiB of this machine",
                            in_gib(bytes), in_gib(memory_limit())));
        }
    }
    return buffers;
}

std::size_t find_buffer(const JsonValue& name, const std::vector<BufferSpec>& buffers) {
    return find_buffer(name, name.string(), buffers);
}

std::size_t find_buffer(const JsonValue& place, const std::string& name, const std::vector<BufferSpec>& buffers) {
    const auto found =
        std::find_if(buffers.begin(), buffers.end(), [&](const BufferSpec& buffer) { return buffer.name == name; });
    if (found != buffers.end()) return static_cast<std::size_t>(found - buffers.begin());
    if (buffers.empty()) place.fail(fmt::format("there is no buffer \"{}\": \"buffers\" names none", name));
    std::vector<std::string> names;
    for (const BufferSpec& buffer : buffers) names.push_back(buffer.name);
    place.fail(fmt::format("there is no buffer \"{}\"{}", name, suggestion(name, names)));
}

}  // namespace block_attention
