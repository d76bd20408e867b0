#include "verify/device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace block_attention {

std::optional<CudaDriver> load_cuda_driver(std::string& why_not, const char* library) {
    void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        why_not = fmt::format("this machine has no CUDA driver ({})", dlerror());
        return std::nullopt;
    }
    CudaDriver driver;
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* symbol) {
        void* const address = dlsym(handle, symbol);
        if (address == nullptr && missing == nullptr) missing = symbol;
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
// Two steps, so that the text is the name that cuda.h maps the function to.
#define BLOCK_ATTENTION_TEXT(symbol) #symbol
#define BLOCK_ATTENTION_FIND(function) find(driver.function, BLOCK_ATTENTION_TEXT(function));
    BLOCK_ATTENTION_CUDA_FUNCTIONS(BLOCK_ATTENTION_FIND)
#undef BLOCK_ATTENTION_FIND
#undef BLOCK_ATTENTION_TEXT
    if (missing != nullptr) {
        why_not = fmt::format("the CUDA driver ({}) is too old: it lacks {}", library, missing);
        dlclose(handle);
        return std::nullopt;
    }
    return driver;
}

std::string to_string(const CudaDriver& driver, CUresult result) {
    const char* name = nullptr;
    const char* meaning = nullptr;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr ||
        driver.cuGetErrorString(result, &meaning) != CUDA_SUCCESS || meaning == nullptr) {
        return fmt::format("CUDA error {}", static_cast<int>(result));
    }
    return fmt::format("{} ({})", name, meaning);
}

}  // namespace block_attention
