// Everything here runs without a GPU: the driver is a table of functions, and a test brings its own.
#include "verify/device/cuda_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "verify/device/cuda_driver.h"

namespace block_attention {
namespace {

constexpr std::string_view kPtx =
    ".version 9.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry scale(\n\t.param .u64 scale_param_0,\n\t.param .u32 scale_param_1\n)\n{\n}\n";
constexpr std::array<std::byte, 4> kImage75{std::byte{75}};
constexpr std::array<std::byte, 4> kImage90a{std::byte{90}};
constexpr std::array<Cubin, 2> kCubins{Cubin{75, false, kImage75}, Cubin{90, true, kImage90a}};
constexpr KernelModule kModule{"scale", "naive/scale.cu", kPtx, kCubins};

/// What the pretended GPU is like.
struct Likeness {
    int version = 13000;
    int count = 1;
    int major = 9;
    int minor = 0;
    CUresult start = CUDA_SUCCESS;
    CUresult load = CUDA_SUCCESS;
    CUresult launch = CUDA_SUCCESS;
    CUresult finish = CUDA_SUCCESS;
    CUresult encode = CUDA_SUCCESS;
    std::uint64_t free_bytes = 1000;
    std::vector<std::size_t> parameter_bytes{8, 4};
    int static_shared_bytes = 1024;
};

/// And what was asked of it.
struct Gpu : Likeness {
    explicit Gpu(const Likeness& like = {}) : Likeness(like) {}

    int contexts = 0;
    int modules = 0;
    int loads = 0;
    std::string image;
    std::map<CUfunction_attribute, int> function_attributes;
    CUlaunchConfig config{};
    CUlaunchAttribute attribute{};
    std::vector<std::uint64_t> parameters;

    CUtensorMapDataType type{};
    std::vector<std::uint64_t> dims, byte_strides;
    std::vector<std::uint32_t> box, element_strides;
    std::uint64_t address = 0;
    CUtensorMapSwizzle swizzle{};
};

Gpu gpu;

CUresult answer(int* value, CUdevice_attribute attribute) {
    const std::map<CUdevice_attribute, int> answers{{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.major},
                                                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.minor},
                                                    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                                                    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}};
    *value = answers.at(attribute);
    return CUDA_SUCCESS;
}

void write_text(void* to, std::string_view text) {
    std::ranges::copy(text, static_cast<char*>(to));
    static_cast<char*>(to)[text.size()] = '\0';
}

CUresult load(CUmodule* module, const void* image, unsigned options, CUjit_option* names, void** values) {
    ++gpu.loads;
    gpu.image =
        options == 0 ? std::to_string(*static_cast<const unsigned char*>(image)) : static_cast<const char*>(image);
    for (unsigned i = 0; i < options && gpu.load != CUDA_SUCCESS; ++i) {
        if (names[i] == CU_JIT_ERROR_LOG_BUFFER) write_text(values[i], "line 3; fatal: no such target");
    }
    *module = std::bit_cast<CUmodule>(std::uintptr_t{1});
    gpu.modules += gpu.load == CUDA_SUCCESS;
    return gpu.load;
}

CUresult launch(const CUlaunchConfig* config, CUfunction, void** parameters, void**) {
    gpu.config = *config;
    if (config->numAttrs == 1) gpu.attribute = *config->attrs;
    gpu.parameters.clear();
    for (std::size_t i = 0; i < gpu.parameter_bytes.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, parameters[i], gpu.parameter_bytes[i]);
        gpu.parameters.push_back(value);
    }
    return gpu.launch;
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
                const cuuint64_t* byte_strides, const cuuint32_t* box, const cuuint32_t* element_strides,
                CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    gpu.type = type;
    gpu.address = std::bit_cast<std::uintptr_t>(address);
    gpu.dims.assign(dims, dims + rank);
    gpu.byte_strides.assign(byte_strides, byte_strides + rank - 1);
    gpu.box.assign(box, box + rank);
    gpu.element_strides.assign(element_strides, element_strides + rank);
    gpu.swizzle = swizzle;
    map->opaque[15] = 0x0807060504030201;
    return gpu.encode;
}

CudaDriver pretended_driver() {
    CudaDriver driver;
    driver.cuGetErrorName = [](CUresult result, const char** name) {
        if (result == CUDA_ERROR_UNKNOWN) return CUDA_ERROR_INVALID_VALUE;
        *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
        return CUDA_SUCCESS;
    };
    driver.cuGetErrorString = [](CUresult, const char** meaning) { return *meaning = "what it means", CUDA_SUCCESS; };
    driver.cuInit = [](unsigned) { return gpu.start; };
    driver.cuDriverGetVersion = [](int* version) { return *version = gpu.version, CUDA_SUCCESS; };
    driver.cuDeviceGetCount = [](int* count) { return *count = gpu.count, CUDA_SUCCESS; };
    driver.cuDeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
    driver.cuDeviceGetName = [](char* name, int, CUdevice) { return write_text(name, "NVIDIA Test"), CUDA_SUCCESS; };
    driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute what, CUdevice) { return answer(value, what); };
    driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) { return *bytes = 5000, CUDA_SUCCESS; };
    driver.cuDevicePrimaryCtxRetain = [](CUcontext*, CUdevice) { return ++gpu.contexts, CUDA_SUCCESS; };
    driver.cuDevicePrimaryCtxRelease = [](CUdevice) { return --gpu.contexts, CUDA_SUCCESS; };
    driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
    driver.cuCtxSynchronize = [] { return gpu.finish; };
    driver.cuModuleLoadDataEx = load;
    driver.cuModuleUnload = [](CUmodule) { return --gpu.modules, CUDA_SUCCESS; };
    driver.cuModuleGetFunction = [](CUfunction*, CUmodule, const char* name) {
        return std::string_view(name) == "scale" ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    };
    driver.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
        return *value = gpu.static_shared_bytes, CUDA_SUCCESS;
    };
    driver.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute what, int value) {
        return gpu.function_attributes[what] = value, CUDA_SUCCESS;
    };
    driver.cuFuncGetParamInfo = [](CUfunction, std::size_t index, std::size_t*, std::size_t* bytes) {
        if (index >= gpu.parameter_bytes.size()) return CUDA_ERROR_INVALID_VALUE;
        return *bytes = gpu.parameter_bytes[index], CUDA_SUCCESS;
    };
    driver.cuLaunchKernelEx = launch;
    driver.cuMemAlloc = [](CUdeviceptr* pointer, std::size_t bytes) {
        *pointer = 4096;
        return bytes > gpu.free_bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
        return *free = gpu.free_bytes, *total = 5000, CUDA_SUCCESS;
    };
    driver.cuTensorMapEncodeTiled = encode;
    return driver;
}

std::unique_ptr<Device> open(const Likeness& like) {
    gpu = Gpu(like);
    std::string why_not;
    auto device = open_cuda_device(pretended_driver(), 0, why_not);
    REQUIRE_MESSAGE(device, why_not);
    return device;
}

std::string reason_against(const Likeness& like, int ordinal = 0) {
    gpu = Gpu(like);
    std::string why_not;
    CHECK(open_cuda_device(pretended_driver(), ordinal, why_not) == nullptr);
    return why_not;
}

/// The message of the DeviceError that `call` throws.
template <typename Call>
std::string error_of(Call call) {
    try {
        call();
    } catch (const DeviceError& error) {
        return error.what();
    }
    return "no error";
}

template <typename T>
KernelParameter parameter(T value) {
    auto [bytes, alignment] = value_argument(value);
    return {bytes, alignment};
}

DeviceLaunch scale_launch() {
    DeviceLaunch launch{&kModule, "scale", {2, 3, 4}, {64, 2, 1}, {}, 256, {}};
    launch.parameters = {parameter(std::uint64_t{0x1122334455667788}), parameter(std::uint32_t{99})};
    return launch;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE("the cubin that a GPU loads") {
    const std::array<Cubin, 5> cubins{Cubin{80, false, {}}, Cubin{90, false, {}}, Cubin{90, true, {}},
                                      Cubin{100, true, {}}, Cubin{120, false, {}}};
    const auto chosen = [&](int architecture) -> std::string {
        const Cubin* cubin = choose_cubin(cubins, architecture);
        if (cubin == nullptr) return "PTX";
        return std::to_string(cubin->architecture) + (cubin->specific ? "a" : "");
    };
    CHECK(chosen(75) == "PTX");
    CHECK(chosen(80) == "80");
    CHECK(chosen(86) == "80");
    CHECK(chosen(90) == "90a");
    CHECK(chosen(100) == "100a");
    CHECK(chosen(103) == "PTX");  // sm_100a is for 10.0 alone
    CHECK(chosen(110) == "PTX");
    CHECK(chosen(120) == "120");  // and sm_120 has no tcgen05
    CHECK(chosen(121) == "120");
    CHECK(choose_cubin({}, 90) == nullptr);

    const std::array<Cubin, 3> ampere{Cubin{80, false, {}}, Cubin{89, false, {}}, Cubin{86, false, {}}};
    CHECK(choose_cubin(ampere, 87)->architecture == 86);
}

TEST_CASE("a machine without a driver") {
    std::string why_not;
    CHECK_FALSE(load_cuda_driver(why_not, "libcuda-that-nobody-has.so.1"));
    CHECK(contains(why_not, "no CUDA driver"));
    CHECK(contains(why_not, "libcuda-that-nobody-has.so.1"));
    CHECK_FALSE(load_cuda_driver(why_not, "libc.so.6"));
    CHECK(why_not == "the CUDA driver (libc.so.6) is too old: it lacks cuGetErrorName");
}

TEST_CASE("this machine's own driver gives a GPU or a reason") {
    std::string why_not;
    const auto device = open_cuda_device(0, why_not);
    CHECK((device != nullptr) == why_not.empty());
    if (device) CHECK(device->properties().architecture >= 50);
}

TEST_CASE("why a GPU is refused") {
    CHECK(contains(reason_against({.start = CUDA_ERROR_NO_DEVICE}), "no GPU"));
    CHECK(contains(reason_against({.start = CUDA_ERROR_UNKNOWN}), "CUDA error 999"));
    CHECK(contains(reason_against({.version = 12080}), "supports CUDA 12.8; 13.0 or newer is needed"));
    CHECK(contains(reason_against({.count = 2}, 2), "no GPU 2; the CUDA driver finds 2"));
    CHECK(contains(reason_against({}, -1), "no GPU -1"));
    CHECK(gpu.contexts == 0);
}

TEST_CASE("properties, and what is given back at the end") {
    auto device = open({});
    CHECK(device->properties().name == "NVIDIA Test");
    CHECK(device->properties().architecture == 90);
    CHECK(device->properties().multiprocessors == 132);
    CHECK(device->properties().memory_bytes == 5000);
    device->launch(scale_launch());
    CHECK(gpu.contexts == 1);
    CHECK(gpu.modules == 1);
    device.reset();
    CHECK(gpu.contexts == 0);
    CHECK(gpu.modules == 0);
}

TEST_CASE("allocations that do not fit name what was asked for") {
    const auto device = open({});
    CHECK(device->allocate(0, "empty") == 4096);
    const std::string error = error_of([&] { device->allocate(1001, "q"); });
    CHECK(error == "NVIDIA Test: no room for the 1001 bytes of 'q': 1000 of 5000 bytes are free");
}

TEST_CASE("a launch reaches the driver as it is") {
    const auto device = open({});
    device->launch(scale_launch());
    CHECK(gpu.image == "90");
    CHECK(gpu.parameters == std::vector<std::uint64_t>{0x1122334455667788, 99});
    CHECK(std::array{gpu.config.gridDimX, gpu.config.gridDimY, gpu.config.gridDimZ} == std::array{2U, 3U, 4U});
    CHECK(std::array{gpu.config.blockDimX, gpu.config.blockDimY, gpu.config.blockDimZ} == std::array{64U, 2U, 1U});
    CHECK(gpu.config.sharedMemBytes == 256);
    CHECK(gpu.config.numAttrs == 0);
    CHECK(gpu.function_attributes.empty());
    device->launch(scale_launch());
    CHECK(gpu.loads == 1);
}

TEST_CASE("clusters, and those beyond the portable size") {
    const auto device = open({});
    DeviceLaunch launch = scale_launch();
    launch.cluster = {2, 1, 4};
    device->launch(launch);
    REQUIRE(gpu.config.numAttrs == 1);
    CHECK(gpu.attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    const auto& size = gpu.attribute.value.clusterDim;
    CHECK(std::array{size.x, size.y, size.z} == std::array{2U, 1U, 4U});
    CHECK(gpu.function_attributes.empty());

    launch.cluster = {16, 1, 1};
    device->launch(launch);
    CHECK(gpu.function_attributes.at(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1);
}

TEST_CASE("dynamic shared memory beyond 48 KiB, and beyond the GPU") {
    const auto device = open({});
    DeviceLaunch launch = scale_launch();
    launch.dynamic_shared_bytes = 48 * 1024 - 1024;
    device->launch(launch);
    CHECK(gpu.function_attributes.empty());
    launch.dynamic_shared_bytes = 232448 - 1024;
    device->launch(launch);
    CHECK(gpu.function_attributes.at(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 232448 - 1024);
    launch.dynamic_shared_bytes += 1;
    const std::string error = error_of([&] { device->launch(launch); });
    CHECK(contains(error, "kernel scale of naive/scale.cu (grid 2 x 3 x 4, block 64 x 2 x 1, 231425 bytes"));
    CHECK(contains(error, "232449 bytes a block, and NVIDIA Test allows 232448"));
}

TEST_CASE("parameters that the kernel doesn't have, or has otherwise") {
    const auto device = open({});
    DeviceLaunch launch = scale_launch();
    launch.parameters.pop_back();
    CHECK(contains(error_of([&] { device->launch(launch); }), "passes 1 parameters, the kernel takes 2"));
    launch.parameters.push_back(parameter(std::uint16_t{1}));
    CHECK(contains(error_of([&] { device->launch(launch); }), "parameter 1 has 4 bytes, the launch passes 2"));
    launch = scale_launch();
    launch.parameters.push_back(parameter(1));
    CHECK(contains(error_of([&] { device->launch(launch); }), "passes 3 parameters, the kernel takes 2"));
}

TEST_CASE("without a fitting cubin the driver compiles the PTX") {
    const auto device = open({.major = 10});
    device->launch(scale_launch());
    CHECK(gpu.image == kPtx);

    const auto other = open({.major = 10, .load = CUDA_ERROR_INVALID_PTX});
    const std::string error = error_of([&] { other->launch(scale_launch()); });
    CHECK(contains(error, "compiling the PTX of naive/scale.cu for sm_100: line 3; fatal: no such target: CUDA_ERROR"));
}

TEST_CASE("a missing kernel and a refused launch") {
    const auto device = open({.launch = CUDA_ERROR_INVALID_VALUE});
    DeviceLaunch launch = scale_launch();
    CHECK(contains(error_of([&] { device->launch(launch); }),
                   "launching kernel scale of naive/scale.cu (grid 2 x 3 x 4"));
    launch.kernel = "scales";
    CHECK(contains(error_of([&] { device->launch(launch); }), "looking up kernel scales of naive/scale.cu"));
}

TEST_CASE("a kernel that dies is named when the host waits") {
    const auto device = open({});
    device->launch(scale_launch());
    device->synchronize();
    device->launch(scale_launch());
    device->launch(scale_launch());
    gpu.finish = CUDA_ERROR_ILLEGAL_ADDRESS;
    CHECK(
        error_of([&] { device->synchronize(); }) ==
        "NVIDIA Test: waiting for the kernels: CUDA_ERROR_ILLEGAL_ADDRESS (what it means); unfinished: kernel scale of "
        "naive/scale.cu (grid 2 x 3 x 4, block 64 x 2 x 1, 256 bytes of dynamic shared memory)");
}

TEST_CASE("a tensor map is encoded from its fields") {
    const auto device = open({});
    TensorMapArgument map{Operand::k, 32, DType::bf16, {64, 256, 8}, {128, 32768}, {64, 32, 1}, Swizzle::b128};
    CHECK(device->encode(map, 4096)[120] == std::byte{1});
    CHECK(gpu.type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    CHECK(gpu.address == 4096);  // whoever resolves the plan has added the offset
    CHECK(gpu.dims == map.dims);
    CHECK(gpu.byte_strides == map.byte_strides);
    CHECK(gpu.box == map.box);
    CHECK(gpu.element_strides == std::vector<std::uint32_t>{1, 1, 1});
    CHECK(gpu.swizzle == CU_TENSOR_MAP_SWIZZLE_128B);

    gpu.encode = CUDA_ERROR_INVALID_VALUE;
    CHECK(contains(error_of([&] { device->encode(map, 4096); }),
                   "encoding the tensor map of k at 0x1000 (type bf16, dims {64, 256, 8}, byte strides {128, 32768}, "
                   "box {64, 32, 1}, swizzle 128B): CUDA_ERROR"));
    map.byte_strides.pop_back();
    CHECK(contains(error_of([&] { device->encode(map, 4096); }), "with one byte stride fewer"));
}

}  // namespace
}  // namespace block_attention
