#include "verify/device/cuda_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "verify/device/cuda_driver.h"

namespace block_attention {
namespace {

// Kernels are compiled by a toolkit of this major version, whose machine code and PTX an older driver does not know.
constexpr int kDriverVersion = CUDA_VERSION / 1000 * 1000;
// What a block may have of shared memory, static and dynamic together, without asking for more.
constexpr int kSharedBytesWithoutOptIn = 48 * 1024;
// What every GPU with clusters supports; the kernel must allow a larger size.
constexpr std::uint64_t kPortableClusterSize = 8;
constexpr std::size_t kJitLogBytes = 16384;

std::string to_string(const Dim3& dim) { return fmt::format("{} x {} x {}", dim.x, dim.y, dim.z); }

std::string describe(const DeviceLaunch& launch) {
    const std::string cluster = launch.cluster == Dim3{} ? "" : ", cluster " + to_string(launch.cluster);
    return fmt::format("kernel {} of {} (grid {}, block {}{}, {} bytes of dynamic shared memory)", launch.kernel,
                       launch.module->source, to_string(launch.grid), to_string(launch.block), cluster,
                       launch.dynamic_shared_bytes);
}

/// How many parameters the module's PTX declares for a kernel. The driver doesn't tell: asking it for one too many
/// works, but is an error that a checker reports.
std::size_t count_parameters(std::string_view ptx, std::string_view kernel) {
    const std::size_t entry = ptx.find(fmt::format(".entry {}(", kernel));
    const std::string_view list =
        entry == std::string_view::npos ? "" : ptx.substr(entry, ptx.find(')', entry) - entry);
    constexpr std::string_view kDeclaration = ".param ";
    std::size_t count = 0;
    for (std::size_t at = list.find(kDeclaration); at != std::string_view::npos; at = list.find(kDeclaration, at + 1)) {
        ++count;
    }
    return count;
}

CUtensorMapDataType data_type_of(DType dtype) {
    switch (dtype) {
        case DType::fp16:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        case DType::bf16:
            return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        case DType::fp32:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }
    throw DeviceError(fmt::format("no tensor map has elements of type {}", static_cast<int>(dtype)));
}

struct SwizzleMode {
    CUtensorMapSwizzle code;
    std::string_view name;
};

SwizzleMode mode_of(Swizzle swizzle) {
    switch (swizzle) {
        case Swizzle::none:
            return {CU_TENSOR_MAP_SWIZZLE_NONE, "none"};
        case Swizzle::b32:
            return {CU_TENSOR_MAP_SWIZZLE_32B, "32B"};
        case Swizzle::b64:
            return {CU_TENSOR_MAP_SWIZZLE_64B, "64B"};
        case Swizzle::b128:
            return {CU_TENSOR_MAP_SWIZZLE_128B, "128B"};
    }
    throw DeviceError(fmt::format("no tensor map has swizzle {}", static_cast<int>(swizzle)));
}

class CudaDevice final : public Device {
  public:
    CudaDevice(const CudaDriver& driver, CUdevice device, CUcontext context, DeviceProperties properties,
               int shared_bytes_per_block)
        : driver_(driver),
          device_(device),
          context_(context),
          properties_(std::move(properties)),
          shared_bytes_per_block_(shared_bytes_per_block) {}
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    // Nobody could act on an error here: the driver frees everything at the end of the process.
    ~CudaDevice() override {
        driver_.cuCtxSetCurrent(context_);
        for (const auto& [kernels, module] : modules_) driver_.cuModuleUnload(module);
        driver_.cuDevicePrimaryCtxRelease(device_);
    }

    [[nodiscard]] const DeviceProperties& properties() const override { return properties_; }

    DevicePointer allocate(std::uint64_t bytes, std::string_view label) override {
        enter();
        CUdeviceptr pointer = 0;
        // The driver refuses 0 bytes, which an empty operand needs.
        const CUresult result = driver_.cuMemAlloc(&pointer, std::max<std::uint64_t>(bytes, 1));
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            std::size_t free = 0;
            std::size_t total = 0;
            check(driver_.cuMemGetInfo(&free, &total), "asking for the free memory");
            throw DeviceError(fmt::format("{}: no room for the {} bytes of '{}': {} of {} bytes are free",
                                          properties_.name, bytes, label, free, total));
        }
        check(result, fmt::format("allocating {} bytes for '{}'", bytes, label));
        return pointer;
    }

    void free(DevicePointer pointer) override {
        enter();
        check(driver_.cuMemFree(pointer), fmt::format("freeing memory at {:#x}", pointer));
    }

    void copy_to_device(DevicePointer to, std::span<const std::byte> from) override {
        if (from.empty()) return;
        enter();
        check(driver_.cuMemcpyHtoD(to, from.data(), from.size()),
              fmt::format("copying {} bytes to {:#x}", from.size(), to));
    }

    void copy_to_host(std::span<std::byte> to, DevicePointer from) override {
        if (to.empty()) return;
        enter();
        check(driver_.cuMemcpyDtoH(to.data(), from, to.size()),
              fmt::format("copying {} bytes from {:#x}", to.size(), from));
    }

    void poison(DevicePointer pointer, std::uint64_t bytes, std::byte pattern) override {
        if (bytes == 0) return;
        enter();
        check(driver_.cuMemsetD8(pointer, std::to_integer<unsigned char>(pattern), bytes),
              fmt::format("filling {} bytes at {:#x}", bytes, pointer));
    }

    std::array<std::byte, 128> encode(const TensorMapArgument& map, DevicePointer base) override;
    void launch(const DeviceLaunch& launch) override;

    void synchronize() override {
        enter();
        check(driver_.cuCtxSynchronize(), "waiting for the kernels");
        unfinished_.clear();
    }

    std::vector<Finding> take_findings() override { return {}; }

  private:
    // Whoever else uses CUDA in this process may have made another context current.
    void enter() { check(driver_.cuCtxSetCurrent(context_), "making the GPU's context current"); }

    // A kernel that dies is reported by whatever call comes next, so an error names the kernels still at work.
    void check(CUresult result, const std::string& attempt) const {
        if (result == CUDA_SUCCESS) return;
        std::string message = fmt::format("{}: {}: {}", properties_.name, attempt, to_string(driver_, result));
        if (!unfinished_.empty()) message += fmt::format("; unfinished: {}", fmt::join(unfinished_, ", "));
        throw DeviceError(message);
    }

    CUmodule load(const KernelModule& kernels);
    CUmodule compile(const KernelModule& kernels);
    void check_parameters(CUfunction function, const DeviceLaunch& launch) const;
    void allow_shared_memory(CUfunction function, const DeviceLaunch& launch) const;

    CudaDriver driver_;
    CUdevice device_;
    CUcontext context_;
    DeviceProperties properties_;
    int shared_bytes_per_block_;
    std::unordered_map<const KernelModule*, CUmodule> modules_;
    std::vector<std::string> unfinished_;  // launched since the last synchronize(), each kind once
};

std::array<std::byte, 128> CudaDevice::encode(const TensorMapArgument& map, DevicePointer base) {
    const SwizzleMode swizzle = mode_of(map.swizzle);
    const std::string attempt = fmt::format(
        "encoding the tensor map of {} at {:#x} (type {}, dims {{{}}}, byte strides {{{}}}, box {{{}}}, swizzle {})",
        name_of(map.operand), base, name_of(map.dtype), fmt::join(map.dims, ", "), fmt::join(map.byte_strides, ", "),
        fmt::join(map.box, ", "), swizzle.name);

    // The driver reads as many entries of each field as the rank says.
    constexpr std::size_t kMaxRank = 5;
    const std::size_t rank = map.dims.size();
    if (rank < 1 || rank > kMaxRank || map.byte_strides.size() != rank - 1 || map.box.size() != rank) {
        throw DeviceError(attempt + ": 1 to 5 dims are allowed, with one byte stride fewer and as many box entries");
    }
    std::array<std::uint64_t, kMaxRank> byte_strides{};
    std::ranges::copy(map.byte_strides, byte_strides.begin());
    std::array<std::uint32_t, kMaxRank> element_strides{};
    element_strides.fill(1);

    enter();
    CUtensorMap encoded{};
    check(
        driver_.cuTensorMapEncodeTiled(
            &encoded, data_type_of(map.dtype), static_cast<cuuint32_t>(rank),
            reinterpret_cast<void*>(static_cast<std::uintptr_t>(base)),  // NOLINT(performance-no-int-to-ptr)
            map.dims.data(), byte_strides.data(), map.box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle.code, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        attempt);
    return std::bit_cast<std::array<std::byte, 128>>(encoded);
}

CUmodule CudaDevice::load(const KernelModule& kernels) {
    const auto known = modules_.find(&kernels);
    if (known != modules_.end()) return known->second;
    CUmodule module = nullptr;
    if (const Cubin* cubin = choose_cubin(kernels.cubins, properties_.architecture)) {
        check(driver_.cuModuleLoadDataEx(&module, cubin->image.data(), 0, nullptr, nullptr),
              fmt::format("loading {} for sm_{}{}", kernels.source, cubin->architecture, cubin->specific ? "a" : ""));
    } else {
        module = compile(kernels);
    }
    return modules_.emplace(&kernels, module).first->second;
}

CUmodule CudaDevice::compile(const KernelModule& kernels) {
    const std::string ptx(kernels.ptx);  // ends with the zero that the driver looks for
    std::string log(kJitLogBytes, '\0');
    std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    // An option's value is passed in place of a pointer.
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};  // NOLINT(performance-no-int-to-ptr)
    CUmodule module = nullptr;
    const CUresult result = driver_.cuModuleLoadDataEx(&module, ptx.c_str(), static_cast<unsigned>(options.size()),
                                                       options.data(), values.data());
    const std::string_view said = std::string_view(log).substr(0, log.find('\0'));
    check(result, fmt::format("compiling the PTX of {} for sm_{}{}{}", kernels.source, properties_.architecture,
                              said.empty() ? "" : ": ", said));
    return module;
}

// The driver reads as many bytes as the kernel declares, whatever the launch holds.
void CudaDevice::check_parameters(CUfunction function, const DeviceLaunch& launch) const {
    const std::size_t declared = count_parameters(launch.module->ptx, launch.kernel);
    if (declared != launch.parameters.size()) {
        throw DeviceError(fmt::format("{}: the launch passes {} parameters, the kernel takes {}", describe(launch),
                                      launch.parameters.size(), declared));
    }
    for (std::size_t i = 0; i < declared; ++i) {
        std::size_t offset = 0;
        std::size_t bytes = 0;
        check(driver_.cuFuncGetParamInfo(function, i, &offset, &bytes),
              fmt::format("asking for parameter {} of {}", i, describe(launch)));
        if (bytes != launch.parameters[i].bytes.size()) {
            throw DeviceError(fmt::format("{}: parameter {} has {} bytes, the launch passes {}", describe(launch), i,
                                          bytes, launch.parameters[i].bytes.size()));
        }
    }
}

void CudaDevice::allow_shared_memory(CUfunction function, const DeviceLaunch& launch) const {
    int static_bytes = 0;
    check(driver_.cuFuncGetAttribute(&static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
          fmt::format("asking for the static shared memory of {}", describe(launch)));
    const std::int64_t all_bytes = std::int64_t{static_bytes} + launch.dynamic_shared_bytes;
    if (all_bytes <= kSharedBytesWithoutOptIn) return;
    if (all_bytes > shared_bytes_per_block_) {
        throw DeviceError(fmt::format(
            "{}: with {} bytes of static shared memory that is {} bytes a block, and {} allows {}; use smaller tiles",
            describe(launch), static_bytes, all_bytes, properties_.name, shared_bytes_per_block_));
    }
    check(driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(launch.dynamic_shared_bytes)),
          fmt::format("allowing the shared memory of {}; the GPU has {} bytes a block", describe(launch),
                      shared_bytes_per_block_));
}

void CudaDevice::launch(const DeviceLaunch& launch) {
    enter();
    CUfunction function = nullptr;
    check(driver_.cuModuleGetFunction(&function, load(*launch.module), launch.kernel.c_str()),
          fmt::format("looking up {}", describe(launch)));
    check_parameters(function, launch);
    allow_shared_memory(function, launch);

    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = launch.cluster.x;
    cluster.value.clusterDim.y = launch.cluster.y;
    cluster.value.clusterDim.z = launch.cluster.z;
    const bool clustered = launch.cluster != Dim3{};
    if (launch.cluster.count() > kPortableClusterSize) {
        check(driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
              fmt::format("allowing the cluster of {}", describe(launch)));
    }

    CUlaunchConfig config{};
    config.gridDimX = launch.grid.x;
    config.gridDimY = launch.grid.y;
    config.gridDimZ = launch.grid.z;
    config.blockDimX = launch.block.x;
    config.blockDimY = launch.block.y;
    config.blockDimZ = launch.block.z;
    config.sharedMemBytes = launch.dynamic_shared_bytes;
    config.attrs = clustered ? &cluster : nullptr;
    config.numAttrs = clustered ? 1 : 0;

    // The driver copies the parameters before it returns and writes none of them; its signature is C's.
    std::vector<void*> parameters;
    parameters.reserve(launch.parameters.size());
    for (const KernelParameter& parameter : launch.parameters) {
        parameters.push_back(const_cast<std::byte*>(parameter.bytes.data()));
    }
    check(driver_.cuLaunchKernelEx(&config, function, parameters.data(), nullptr),
          fmt::format("launching {}", describe(launch)));
    std::string launched = describe(launch);
    if (!std::ranges::count(unfinished_, launched)) unfinished_.push_back(std::move(launched));
}

}  // namespace

const Cubin* choose_cubin(std::span<const Cubin> cubins, int architecture) {
    const Cubin* best = nullptr;
    for (const Cubin& cubin : cubins) {
        if (cubin.specific) {
            if (cubin.architecture == architecture) return &cubin;
        } else if (cubin.architecture / 10 == architecture / 10 && cubin.architecture <= architecture &&
                   (best == nullptr || cubin.architecture > best->architecture)) {
            best = &cubin;
        }
    }
    return best;
}

std::unique_ptr<Device> open_cuda_device(int ordinal, std::string& why_not) {
    const auto driver = load_cuda_driver(why_not);
    return driver ? open_cuda_device(*driver, ordinal, why_not) : nullptr;
}

std::unique_ptr<Device> open_cuda_device(const CudaDriver& driver, int ordinal, std::string& why_not) {
    const auto refuse = [&](std::string reason) {
        why_not = std::move(reason);
        return nullptr;
    };
    const CUresult started = driver.cuInit(0);
    if (started == CUDA_ERROR_NO_DEVICE) return refuse("this machine has a CUDA driver but no GPU");
    if (started != CUDA_SUCCESS) {
        return refuse(fmt::format("the CUDA driver doesn't start: {}", to_string(driver, started)));
    }

    int version = 0;
    int count = 0;
    CUdevice device = 0;
    std::array<char, 256> name{};
    DeviceProperties properties;
    std::size_t memory_bytes = 0;
    int major = 0;
    int minor = 0;
    int shared_bytes = 0;
    CUcontext context = nullptr;

    // Takes each answer in turn; the first failure becomes the reason.
    const auto failed = [&](CUresult result, std::string_view attempt) {
        if (result == CUDA_SUCCESS) return false;
        why_not = fmt::format("GPU {}: {}: {}", ordinal, attempt, to_string(driver, result));
        return true;
    };
    const auto attribute_failed = [&](int& value, CUdevice_attribute attribute, std::string_view what) {
        return failed(driver.cuDeviceGetAttribute(&value, attribute, device), what);
    };
    if (failed(driver.cuDriverGetVersion(&version), "asking for the driver's version")) return nullptr;
    if (version < kDriverVersion) {
        return refuse(fmt::format("the CUDA driver supports CUDA {}.{}; {}.{} or newer is needed", version / 1000,
                                  version % 1000 / 10, kDriverVersion / 1000, kDriverVersion % 1000 / 10));
    }
    if (failed(driver.cuDeviceGetCount(&count), "counting the GPUs")) return nullptr;
    if (ordinal < 0 || ordinal >= count) {
        return refuse(fmt::format("there is no GPU {}; the CUDA driver finds {}, counted from 0", ordinal, count));
    }
    if (failed(driver.cuDeviceGet(&device, ordinal), "opening") ||
        failed(driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device), "asking for the name") ||
        failed(driver.cuDeviceTotalMem(&memory_bytes, device), "asking for the memory") ||
        attribute_failed(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "asking for the compute capability") ||
        attribute_failed(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "asking for the compute capability") ||
        attribute_failed(properties.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                         "counting the multiprocessors") ||
        attribute_failed(shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                         "asking for the shared memory") ||
        failed(driver.cuDevicePrimaryCtxRetain(&context, device), "retaining the primary context")) {
        return nullptr;
    }
    properties.name = name.data();
    properties.architecture = major * 10 + minor;
    properties.memory_bytes = memory_bytes;
    return std::make_unique<CudaDevice>(driver, device, context, std::move(properties), shared_bytes);
}

}  // namespace block_attention
