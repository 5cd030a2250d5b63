// SPDX-License-Identifier: Apache-2.0
#include "headrace/device/device.h"

#include <charconv>
#include <map>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/device/host_device.h"

namespace headrace {
namespace {

const ErrorCode kNoSuchName{
    "HR0881", ErrorKind::kConfig, "not the name of a device",
    "Devices are named as torch names them: \"cpu\", \"cuda\" (the first, or torch's current one), "
    "\"cuda:1\"."};

const ErrorCode kDeviceFailed{
    "HR0883", ErrorKind::kUnsupported, "the device reports an error",
    "A call to the CUDA runtime failed. Errors of kernels are reported late: the cause may be any "
    "kernel of the process that ran before, Headrace's or the model's. CUDA_LAUNCH_BLOCKING=1 or "
    "compute-sanitizer finds which. After an illegal address the process has to be started again, for this device: "
    "loader.load_state_dict(loader.state_dict()) and loader.torch() go on with the CPU."};

const ErrorCode kNoSuchDevice{
    "HR0882", ErrorKind::kUnsupported, "no such device",
    "Headrace looked for CUDA devices through the driver (libcuda.so.1) when the device was asked "
    "for. The message says what it found: no driver, one that is too old, fewer devices, or a "
    "build of Headrace without CUDA. CUDA_VISIBLE_DEVICES hides devices."};

// "cuda" -> 0, "cuda:1" -> 1, anything else -> -1.
int cuda_index(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return -1;
  name.remove_prefix(5);
  int index = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  return error == std::errc() && end == name.data() + name.size() ? index : -1;
}

DevicePtr open_cuda(int index) {
  const CudaDevices found = cuda_devices();
  if (index < found.count) return open_cuda_device(index);
  if (found.count > 0) {
    raise(kNoSuchDevice,
          "cuda:" + std::to_string(index) + ": there are " + std::to_string(found.count) +
              " CUDA devices, cuda:0 to cuda:" + std::to_string(found.count - 1),
          "see CUDA_VISIBLE_DEVICES");
  }
  raise(kNoSuchDevice, "cuda:" + std::to_string(index) + ": " + found.why_none,
        "use device=\"cpu\", or look at what nvidia-smi says");
}

}  // namespace

void throw_device_failed(const std::string& what) { raise(kDeviceFailed, what); }

void wait_until_done(const Event& event) noexcept {
  try {
    event.wait_on_host();
  } catch (const Exception&) {
  }
}

std::string reason_of_driver(int driver, int runtime) {
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  if (driver == 0) return "there is no NVIDIA driver (libcuda.so.1)";
  return "the driver is too old (it has CUDA " + text(driver) + ", " + text(runtime) +
         " is needed)";
}

DevicePtr open_device(std::string_view name) {
  if (name == "cpu") return host_device();
  const int index = cuda_index(name);
  if (index < 0) {
    raise(kNoSuchName, "\"" + std::string(name) + "\"", "\"cpu\", \"cuda\" or \"cuda:1\"");
  }
  static Mutex mutex;
  static auto& opened = *new std::map<int, DevicePtr>;  // never destroyed: the driver goes first
  MutexLock lock(mutex);
  DevicePtr& device = opened[index];
  if (!device) device = open_cuda(index);
  return device;
}

}  // namespace headrace
