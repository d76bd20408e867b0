#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/simulator.h"

namespace block_attention::simulator {

/// The least target that has every instruction of a test's kernel.
inline std::string_view target_of(std::string_view body) {
    if (body.find("tcgen05.") != std::string_view::npos) return "sm_100a";
    return body.find("wgmma.") != std::string_view::npos ? "sm_90a" : "sm_75";
}

/// A kernel written in a test, on a simulator of its own. Its parameters are 64-bit buffer addresses p0, p1, ..., which
/// the body finds in %a0, %a1, ...; %tid.x is in %t, and %b0 to %b63 (b32), %d0 to %d31 (b64), %h0 to %h31 (b16), %p0
/// to %p15 are free to use.
class TestKernel {
  public:
    TestKernel(std::string_view body, unsigned buffers, const Options& options = {}) : simulator_(options) {
        std::string parameters;
        std::string prologue;
        for (unsigned i = 0; i < buffers; ++i) {
            parameters += fmt::format("{}.param .u64 p{}", i == 0 ? "" : ", ", i);
            prologue += fmt::format("ld.param.u64 %a{0}, [p{0}];\n", i);
        }
        // The body starts at line 10 of "test.ptx", and says that it comes from line 100 of "test.cu".
        const std::string text = fmt::format(
            ".version 9.0\n.target {}\n.address_size 64\n.file 1 \"test.cu\"\n"
            ".visible .entry k({}) {{ .reg .b64 %a<8>; .reg .b32 %b<64>, %t; .reg .b64 %d<32>; .reg .b16 %h<32>; .reg "
            ".pred %p<16>;\nmov.u32 %t, %tid.x;\n{}.loc 1 100 0\n{}\nret;\n}}\n",
            target_of(body), parameters, prologue, body);
        module_ = simulator_.load(text, "test.ptx");
    }

    /// A buffer with that content, passed as the next parameter.
    template <typename T>
    TestKernel& input(const std::vector<T>& values) {
        const auto bytes = std::as_bytes(std::span(values));
        addresses_.push_back(simulator_.allocate(bytes.size(), fmt::format("buffer {}", addresses_.size())));
        simulator_.write(addresses_.back(), bytes);
        return *this;
    }
    /// A buffer that nothing was written to.
    TestKernel& output(std::size_t bytes) {
        addresses_.push_back(simulator_.allocate(bytes, fmt::format("buffer {}", addresses_.size())));
        return *this;
    }
    /// Overwrites the start of a buffer.
    void write(std::size_t buffer, std::span<const std::byte> bytes) { simulator_.write(addresses_.at(buffer), bytes); }
    [[nodiscard]] std::uint64_t address(std::size_t buffer) const { return addresses_.at(buffer); }
    bool run(Dim3 grid, Dim3 block, std::uint32_t dynamic_shared_bytes = 0, Dim3 cluster = {}) {
        LaunchRequest request{module_, "k", grid, block, cluster, dynamic_shared_bytes, {}};
        for (const std::uint64_t& address : addresses_)
            request.parameters.push_back(std::as_bytes(std::span(&address, 1)));
        return simulator_.launch(request);
    }
    template <typename T>
    std::vector<T> read(std::size_t buffer, std::size_t count) {
        std::vector<T> values(count);
        simulator_.read(addresses_.at(buffer), std::as_writable_bytes(std::span(values)));
        return values;
    }
    std::vector<Finding> findings() { return simulator_.take_findings(); }
    Simulator& simulator() { return simulator_; }

  private:
    Simulator simulator_;
    ModuleHandle module_;
    std::vector<std::uint64_t> addresses_;
};

}  // namespace block_attention::simulator
