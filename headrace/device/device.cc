// SPDX-License-Identifier: Apache-2.0
#include "headrace/device/device.h"

#include <cstdio>
#include <map>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"

namespace headrace {
namespace {

const ErrorCode kNoSuchName{
    "HR0881", ErrorKind::kConfig, "invalid device name",
    "Devices are named as in torch: \"cpu\", \"cuda\" (the first device, or torch's current one), "
    "\"cuda:1\"."};

const ErrorCode kDeviceFailed{
    "HR0883", ErrorKind::kUnsupported, "device error",
    "A call to the CUDA runtime failed. Kernel errors are reported late: the cause may be any "
    "earlier kernel of the process, Headrace's or the model's. CUDA_LAUNCH_BLOCKING=1 or "
    "compute-sanitizer finds which. After an illegal address, this device cannot be used again "
    "until the process is restarted; loader.load_state_dict(loader.state_dict()) and "
    "loader.torch() continue on the CPU."};

const ErrorCode kNoSuchDevice{
    "HR0882", ErrorKind::kUnsupported, "device not found",
    "Headrace searched for CUDA devices through the driver (libcuda.so.1) when the device was "
    "requested. The message states the cause: no driver, a driver that is too old, fewer devices, "
    "or a build of Headrace without CUDA. CUDA_VISIBLE_DEVICES can hide devices."};

// "cuda" -> 0, "cuda:1" -> 1; -1 if it is not a name of this backend.
int index_of(std::string_view name, const DeviceBackend& backend) {
  if (name == backend.name) return 0;
  if (!backend.numbered || !name.starts_with(backend.name)) return -1;
  name.remove_prefix(backend.name.size());
  return name.starts_with(':') ? number_from<int>(name.substr(1)).value_or(-1) : -1;
}

const ErrorCode kOutOfMemory{
    "HR0880", ErrorKind::kResource, "not enough memory on the device",
    "Headrace needs device memory for the batches that it copies ahead (depth batches, plus one "
    "for the consumer) and for data that stays on the device; the message gives the numbers. The "
    "remaining device memory is used by the model and by the framework's caching allocator, which "
    "does not return memory: create the loader before the model, use a smaller depth or batch, or "
    "keep a smaller part of the data on the device."};

}  // namespace

void throw_device_failed(const std::string& what) { raise(kDeviceFailed, what); }

void wait_until_done(const Event& event) noexcept {
  try {
    event.wait_on_host();
  } catch (...) {  // the device is lost, so nothing runs there; or there is no memory to say so
  }
}

void throw_no_device(const std::string& what, const std::string& hint) {
  raise(kNoSuchDevice, what, hint);
}

DevicePtr open_device(std::string_view name) {
  static Mutex mutex;
  static auto& opened =
      *new std::map<std::string, DevicePtr>;  // never destroyed: drivers end first
  for (const DeviceBackend* backend : Registry<DeviceBackend>::all()) {
    const int index = index_of(name, *backend);
    if (index < 0) continue;
    MutexLock lock(mutex);
    DevicePtr& device = opened[std::string(backend->name) + ":" + std::to_string(index)];
    if (!device) device = backend->open(index);
    return device;
  }
  raise(kNoSuchName, "\"" + std::string(name) + "\"", "\"cpu\", \"cuda\" or \"cuda:1\"");
}

std::string mebibytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / 1048576);
  return text;
}

void throw_out_of_memory(const std::string& device, size_t wanted, size_t free, size_t total) {
  raise(kOutOfMemory,
        device + ": " + mebibytes(wanted) + " are needed, but only " + mebibytes(free) + " of " +
            mebibytes(total) + " are free",
        "use a smaller depth= or batch_size=");
}

bool is_out_of_memory(const Exception& exception) {
  return exception.error().code == &kOutOfMemory;
}

}  // namespace headrace
