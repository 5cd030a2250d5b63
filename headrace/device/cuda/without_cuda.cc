// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_device.cc where Headrace is built without CUDA.
#include <cstdlib>

#include "headrace/device/cuda/cuda_devices.h"

namespace headrace {

CudaDevices cuda_devices() { return {0, "this Headrace was built without CUDA"}; }

DevicePtr open_cuda_device(int) { std::abort(); }  // no device can be requested

void* cuda_stream_of(const Stream&) { return nullptr; }

}  // namespace headrace
