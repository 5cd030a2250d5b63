// SPDX-License-Identifier: Apache-2.0
// What CUDA devices offer beyond Device. Defined by cuda_device.cc, or by no_cuda.cc where
// Headrace is built without CUDA. Any thread may call it.
#pragma once

#include <string>

#include "headrace/device/device.h"

namespace headrace {

// Devices that can be used, and where there are none, why: "the driver is too old (12.2; 13.0 is
// needed)".
struct CudaDevices {
  int count = 0;
  std::string why_none;
};
CudaDevices cuda_devices();
// The same in words, from CUDA's version numbers (12020); no driver: 0.
std::string reason_of_driver(int driver, int runtime);
// REQUIRES: index < cuda_devices().count
DevicePtr open_cuda_device(int index);
// The cudaStream_t; null where the stream is another backend's.
void* cuda_stream_of(const Stream& stream);

}  // namespace headrace
