#include "verify/ptx_command/listing.h"

#include <doctest/doctest.h>

#include "verify/simulator/ptx/parse.h"

namespace block_attention {
namespace {

std::string listing_of(const std::string& text) {
    return list_kernels(simulator::ptx::parse(".version 9.0\n.target sm_90a\n.address_size 64\n" + text, "k.ptx"));
}

TEST_CASE("kernels are listed with what a launch must know of them") {
    CHECK(listing_of(R"(
.extern .shared .align 128 .b8 dynamic[];
.shared .align 4 .b8 of_module[100];
.visible .entry gemm(
    .param .align 64 .b8 gemm_param_0[128],
    .param .u64 .ptr .global .align 16 gemm_param_1,
    .param .align 32 .b8 gemm_param_2[128],
    .param .u32 n
)
.reqntid 128, 2
.explicitcluster
.reqnctapercluster 2, 1, 1
.maxnreg 168
{
    .reg .b32 %r<3>;
    .shared .align 1 .b8 first[3];
    .shared .align 8 .b8 second[16];
    mov.u32 %r1, dynamic;
    mov.u32 %r2, of_module;
    ret;
}
.visible .entry plain() .maxntid 64, 4, 1 { ret; }
.func helper() { ret; }
.entry declared(.param .u32 n);
)") == "k.ptx: PTX 9.0 for sm_90a, 2 kernels\n"
       "\n"
       "gemm\n"
       "  block: 128 x 2 (.reqntid)\n"
       "  cluster: 2 x 1 x 1 (.reqnctapercluster)\n"
       "  registers: at most 168 (.maxnreg)\n"
       "  shared memory: 124 bytes static, and dynamic (aligned to 128)\n"
       "  parameter     bytes  alignment\n"
       "  gemm_param_0    128         64  tensor map\n"
       "  gemm_param_1      8          8\n"
       "  gemm_param_2    128         32\n"
       "  n                 4          4\n"
       "\n"
       "plain\n"
       "  block: at most 256 threads (.maxntid)\n"
       "  shared memory: 0 bytes static, none dynamic\n"
       "  no parameters\n");
}

TEST_CASE("a module without a kernel lists none") {
    CHECK(listing_of(".func helper() { ret; }\n") == "k.ptx: PTX 9.0 for sm_90a, 0 kernels\n");
}

}  // namespace
}  // namespace block_attention
