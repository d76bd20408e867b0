#pragma once
#include <memory>
#include <span>
#include <string>

#include "reference/launch.h"
#include "verify/device/device.h"

namespace block_attention {

struct CudaDriver;

/// The machine code to load on a GPU, or null if none fits and the driver must compile the PTX. `architecture` is the
/// GPU's (90 for compute capability 9.0). Code for an "a" target runs on that architecture alone; other code on every
/// GPU of the same major compute capability whose minor one isn't smaller (CUDA C++ Programming Guide, "Binary
/// Compatibility"). Of several that fit, the one made for exactly this GPU, "a" first.
const Cubin* choose_cubin(std::span<const Cubin> cubins, int architecture);

/// The GPU of that number, driven through the CUDA driver API of this machine. Null if there is no driver, no such GPU
/// or one that cannot run the kernels; `why_not` then holds the reason in one sentence.
///
/// Kernels run on the default stream. An error of the driver becomes a DeviceError that names what was attempted, with
/// kernel, grid and block where there is one. After a kernel has died, a GPU takes no more work from this process, and
/// every later call throws.
std::unique_ptr<Device> open_cuda_device(int ordinal, std::string& why_not);

/// The same on a given driver, which is copied.
std::unique_ptr<Device> open_cuda_device(const CudaDriver& driver, int ordinal, std::string& why_not);

}  // namespace block_attention
