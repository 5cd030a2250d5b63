// SPDX-License-Identifier: Apache-2.0
// CUDA devices through the runtime, which is linked statically and finds the driver on first use.
// It uses the device's primary context, as frameworks do, so streams and memory can be shared with
// them.
#include <cuda_runtime_api.h>

#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

// Restores the calling thread's current device at the end, because the framework relies on it.
class OnDevice {
 public:
  explicit OnDevice(int index) {
    cudaGetDevice(&before_);
    if (before_ != index) cudaSetDevice(index);
    changed_ = before_ != index;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

void check(cudaError_t status, int device, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // reported here, and cleared for the next call
  throw_device_failed("cuda:" + std::to_string(device) + ": " + what + ": " +
                      cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

// At process exit the driver is unloaded before our last objects; then there is nothing to wait
// for.
bool is_over(cudaError_t status) { return status == cudaErrorCudartUnloading; }

class CudaEvent final : public Event {
 public:
  // flags: in addition to disabled timing.
  CudaEvent(int device, cudaStream_t stream, unsigned flags = 0) : device_(device) {
    OnDevice on(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | flags), device,
          "cudaEventCreate");
    const cudaError_t status = cudaEventRecord(event_, stream);
    if (!is_over(status)) check(status, device, "cudaEventRecord");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  bool done() const override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    if (!is_over(status)) check(status, device_, "earlier work on the device failed");
    return true;
  }
  void wait_on_host() const override {
    const cudaError_t status = cudaEventSynchronize(event_);
    if (!is_over(status)) check(status, device_, "earlier work on the device failed");
  }
  cudaEvent_t event() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  CudaStream(int device, cudaStream_t stream, bool owned)
      : device_(device), stream_(stream), owned_(owned) {}
  ~CudaStream() override {
    if (owned_) cudaStreamDestroy(stream_);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    OnDevice on(device_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), device_, "cudaMemcpyAsync");
  }
  void run(std::function<void()> work, double) override {
    OnDevice on(device_);
    work();
  }
  EventPtr record() override { return std::make_shared<CudaEvent>(device_, stream_); }
  EventPtr record_for_host() override {
    return std::make_shared<CudaEvent>(device_, stream_, cudaEventBlockingSync);
  }
  void wait(const EventPtr& event) override {
    const auto* known = dynamic_cast<const CudaEvent*>(event.get());
    if (!known) return event->wait_on_host();
    OnDevice on(device_);
    check(cudaStreamWaitEvent(stream_, known->event(), 0), device_, "cudaStreamWaitEvent");
  }
  void synchronize() override {
    OnDevice on(device_);
    check(cudaStreamSynchronize(stream_), device_, "cudaStreamSynchronize");
  }
  uintptr_t handle() const override { return reinterpret_cast<uintptr_t>(stream_); }
  cudaStream_t stream() const { return stream_; }

 private:
  int device_;
  cudaStream_t stream_;
  bool owned_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {}
  std::string_view backend() const override { return "cuda"; }
  int index() const override { return index_; }
  std::string name() const override { return "cuda:" + std::to_string(index_); }

  std::shared_ptr<void> allocate(size_t bytes) override {
    OnDevice on(index_);
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw_out_of_memory(name(), bytes, free_bytes(), total_bytes());
    }
    check(status, index_, "cudaMalloc");
    return {memory, [index = index_](void* freed) {
              OnDevice there(index);
              cudaFree(freed);
            }};
  }

  bool pin(void* pages, size_t bytes) override {
    OnDevice on(index_);
    if (cudaHostRegister(pages, bytes, cudaHostRegisterPortable) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
  }
  void unpin(void* pages) noexcept override { cudaHostUnregister(pages); }

  size_t free_bytes() const override { return memory().first; }
  size_t total_bytes() const override { return memory().second; }

  StreamPtr make_stream() override {
    OnDevice on(index_);
    cudaStream_t stream = nullptr;
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), index_,
          "cudaDeviceGetStreamPriority");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least), index_,
          "cudaStreamCreate");
    return std::make_shared<CudaStream>(index_, stream, true);
  }
  StreamPtr foreign_stream(uintptr_t handle) override {
    return std::make_shared<CudaStream>(index_, reinterpret_cast<cudaStream_t>(handle), false);
  }

 private:
  std::pair<size_t, size_t> memory() const {
    OnDevice on(index_);
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
    return {free, total};
  }
  int index_;
};

}  // namespace

CudaDevices cuda_devices() {
  CudaDevices found;
  int driver = 0, count = 0;
  const cudaError_t asked = cudaDriverGetVersion(&driver);
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) {
    found.count = count;
    if (count == 0) found.why_none = "the driver reports no device";
    return found;
  }
  cudaGetLastError();
  const bool lacks_driver = asked != cudaSuccess || driver == 0;
  if (lacks_driver || status == cudaErrorInsufficientDriver) {
    found.why_none = reason_of_driver(lacks_driver ? 0 : driver, CUDART_VERSION);
  } else {
    found.why_none = cudaGetErrorString(status);
  }
  return found;
}

DevicePtr open_cuda_device(int index) { return std::make_shared<CudaDevice>(index); }

void* cuda_stream_of(const Stream& stream) {
  const auto* const known = dynamic_cast<const CudaStream*>(&stream);
  return known ? known->stream() : nullptr;
}

}  // namespace headrace
