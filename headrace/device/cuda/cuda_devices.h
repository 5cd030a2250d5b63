// SPDX-License-Identifier: Apache-2.0
// Functions for CUDA devices beyond the interface Device. Defined in cuda_device.cc, or in
// without_cuda.cc if Headrace is built without CUDA. Callable from any thread.
#pragma once

#include <string>

#include "headrace/device/device.h"

namespace headrace {

// Number of usable devices; if there are none, the reason: "the driver is too old (12.2; 13.0 is
// needed)".
struct CudaDevices {
  int count = 0;
  std::string why_none;
};
CudaDevices cuda_devices();
// The reason as text, from CUDA's version numbers (12020 is 12.2); driver 0: not installed.
std::string reason_of_driver(int driver, int runtime);
// REQUIRES: index < cuda_devices().count
DevicePtr open_cuda_device(int index);
// The cudaStream_t; null if the stream belongs to another backend.
void* cuda_stream_of(const Stream& stream);

}  // namespace headrace
