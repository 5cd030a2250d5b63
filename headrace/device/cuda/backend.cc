// SPDX-License-Identifier: Apache-2.0
// CUDA devices by their names, in any build.
#include "headrace/base/registry.h"
#include "headrace/device/cuda/cuda_devices.h"

namespace headrace {
namespace {

DevicePtr open_cuda(int index) {
  const CudaDevices found = cuda_devices();
  if (index < found.count) return open_cuda_device(index);
  const std::string name = "cuda:" + std::to_string(index);
  if (found.count > 0) {
    throw_no_device(name + ": there are " + std::to_string(found.count) +
                        " CUDA devices, cuda:0 to cuda:" + std::to_string(found.count - 1),
                    "see CUDA_VISIBLE_DEVICES");
  }
  throw_no_device(name + ": " + found.why_none,
                  "use device=\"cpu\", or check the output of nvidia-smi");
}

const DeviceBackend kCuda{.name = "cuda",
                          .doc = "NVIDIA GPUs, through the CUDA runtime.",
                          .numbered = true,
                          .open = open_cuda};
const Register<DeviceBackend> registered_cuda(kCuda);

}  // namespace

std::string reason_of_driver(int driver, int runtime) {
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  if (driver == 0) return "no NVIDIA driver found (libcuda.so.1)";
  return "the driver is too old (it supports CUDA " + text(driver) + ", but " + text(runtime) +
         " is needed)";
}

}  // namespace headrace
