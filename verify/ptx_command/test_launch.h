#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "verify/io/npy.h"
#include "verify/io/temporary_folder.h"
#include "verify/ptx_command/command.h"
#include "verify/usage_error.h"

namespace block_attention::testing {

inline constexpr std::string_view kPtxHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// y[i] = factor * x[i] for i < n, one thread an element. The store is in line 25.
inline constexpr std::string_view kScaleKernel = R"(
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor, .param .u32 n)
.maxntid 256
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.s32 %r5, %r3, %r4, %r2;
    setp.ge.u32 %p, %r5, %r1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    @!%p ld.global.f32 %f2, [%rd4];
    @!%p mul.f32 %f3, %f2, %f1;
    add.s64 %rd5, %rd2, %rd3;
    @!%p st.global.f32 [%rd5], %f3;
    ret;
}
)";

/// out[tid] = how many threads came before: any order of warps is right, so the result depends on the schedule.
inline constexpr std::string_view kTicketKernel = R"(
.visible .entry ticket(.param .u64 counter, .param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [counter];
    ld.param.u64 %rd2, [out];
    atom.global.add.u32 %r1, [%rd1], 1;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r1;
    ret;
}
)";

/// Copies its first parameter of so many bytes, a multiple of 4, to the buffer behind its second.
inline std::string copy_parameter_kernel(std::string_view name, unsigned bytes, unsigned alignment) {
    std::string text = fmt::format(
        ".visible .entry {}(.param .align {} .b8 {}_in[{}], .param .u64 out)\n{{\n    .reg .b32 %r;\n    .reg .b64 "
        "%rd;\n    ld.param.u64 %rd, [out];\n",
        name, alignment, name, bytes);
    for (unsigned i = 0; i < bytes; i += 4) {
        text += fmt::format("    ld.param.b32 %r, [{}_in+{}];\n    st.global.b32 [%rd+{}], %r;\n", name, i, i);
    }
    return text + "    ret;\n}\n";
}

struct CommandOutcome {
    int exit_code = 0;
    std::string out;
    std::string error;  ///< what the UsageError says, if there was one; the exit code is then 2
};

/// A folder with a PTX file k.ptx, to which specs are added.
class LaunchFolder {
  public:
    explicit LaunchFolder(std::string_view kernels) {
        write_file(folder_ / "k.ptx", fmt::format("{}{}", kPtxHeader, kernels));
    }

    /// Runs `verify ptx k.ptx --launch spec.json` with that spec. Paths in what it says are relative to the folder.
    CommandOutcome launch(const std::string& spec, PtxOptions options = {}) {
        write_file(folder_ / "spec.json", spec);
        options.launch = folder_ / "spec.json";
        return run(std::move(options));
    }
    CommandOutcome list() { return run({.list = true}); }

    CommandOutcome run(PtxOptions options) {
        options.file = folder_ / "k.ptx";
        std::ostringstream out;
        CommandOutcome outcome;
        try {
            outcome.exit_code = run_ptx_command(options, out, false);
        } catch (const UsageError& error) {
            outcome = {2, "", relative(error.what())};
        }
        outcome.out = relative(out.str());
        return outcome;
    }

    void write(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
               std::span<const std::byte> bytes) {
        std::ofstream stream(folder_ / name, std::ios::binary);
        write_npy(stream, type, shape, bytes);
    }
    [[nodiscard]] NpyArray read(const std::string& name) const { return read_npy(folder_ / name); }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  private:
    [[nodiscard]] std::string relative(std::string text) const {
        const std::string prefix = folder_.path().string() + "/";
        for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
            text.erase(at, prefix.size());
        }
        return text;
    }

    TemporaryFolder folder_;
};

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

template <typename T>
std::vector<T> values_of(const NpyArray& array) {
    std::vector<T> values(array.bytes.size() / sizeof(T));
    std::memcpy(values.data(), array.bytes.data(), values.size() * sizeof(T));
    return values;
}

}  // namespace block_attention::testing
