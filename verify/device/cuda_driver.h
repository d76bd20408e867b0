#pragma once
#include <cuda.h>

#include <optional>
#include <string>

namespace block_attention {

// The driver's functions that the CUDA device calls. cuda.h maps some of these names to newer ones, such as cuMemAlloc
// to cuMemAlloc_v2; declarations and look-ups below go through the same mapping.
#define BLOCK_ATTENTION_CUDA_FUNCTIONS(APPLY) \
    APPLY(cuGetErrorName)                     \
    APPLY(cuGetErrorString)                   \
    APPLY(cuInit)                             \
    APPLY(cuDriverGetVersion)                 \
    APPLY(cuDeviceGetCount)                   \
    APPLY(cuDeviceGet)                        \
    APPLY(cuDeviceGetName)                    \
    APPLY(cuDeviceGetAttribute)               \
    APPLY(cuDeviceTotalMem)                   \
    APPLY(cuDevicePrimaryCtxRetain)           \
    APPLY(cuDevicePrimaryCtxRelease)          \
    APPLY(cuCtxSetCurrent)                    \
    APPLY(cuCtxSynchronize)                   \
    APPLY(cuModuleLoadDataEx)                 \
    APPLY(cuModuleUnload)                     \
    APPLY(cuModuleGetFunction)                \
    APPLY(cuFuncGetAttribute)                 \
    APPLY(cuFuncSetAttribute)                 \
    APPLY(cuFuncGetParamInfo)                 \
    APPLY(cuLaunchKernelEx)                   \
    APPLY(cuMemAlloc)                         \
    APPLY(cuMemFree)                          \
    APPLY(cuMemGetInfo)                       \
    APPLY(cuMemcpyHtoD)                       \
    APPLY(cuMemcpyDtoH)                       \
    APPLY(cuMemsetD8)                         \
    APPLY(cuTensorMapEncodeTiled)

/// The CUDA driver API as found at run time, so that one binary serves machines with and without a GPU: a pointer per
/// function, named like it.
struct CudaDriver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member cannot be declared in parentheses
#define BLOCK_ATTENTION_DECLARE(function) decltype(&::function) function = nullptr;
    BLOCK_ATTENTION_CUDA_FUNCTIONS(BLOCK_ATTENTION_DECLARE)
#undef BLOCK_ATTENTION_DECLARE
};

/// Opens the driver's library and looks up every function. Nothing if the library is missing or a function is;
/// `why_not` then holds the reason. The library stays open until the program ends.
std::optional<CudaDriver> load_cuda_driver(std::string& why_not, const char* library = "libcuda.so.1");

/// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
std::string to_string(const CudaDriver& driver, CUresult result);

}  // namespace block_attention
