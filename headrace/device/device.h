// SPDX-License-Identifier: Apache-2.0
// A device as used by the engine: memory, streams of work, and events that mark positions in
// streams.
//
// A backend is a folder: cuda/, host/ (the host itself, where work runs when it is queued) and
// simulated/, which completes work as late and as much out of order as the rules allow. Code that
// is correct on the simulated device is correct on a real one. Backends whose devices have names
// register a DeviceBackend. Features of one backend only (a CUDA stream) are declared in its
// folder.
//
// Work queued in one stream runs in order; work of different streams is ordered only by events:
// work that is queued in a stream after wait(event) begins when everything before the event is
// done. Nothing here blocks the host except Event::wait_on_host, Stream::synchronize and
// allocation. Everything is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace headrace {

class Exception;  // base/error.h

// A position in a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void wait_on_host() const = 0;
};
using EventPtr = std::shared_ptr<const Event>;
// Waits on the host, for destructors: ignores a failure of the device, which is reported at its
// next use.
void wait_until_done(const Event& event) noexcept;

class Stream {
 public:
  virtual ~Stream() = default;
  // Queues a copy between the host and the device, or within one of them. REQUIRES: neither range
  // is reused before an event after it is done.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Queues a function. On a real device it is called immediately, with the device selected, and
  // itself queues work (kernels). `cost` is for simulated clocks.
  virtual void run(std::function<void()> work, double cost = 0) = 0;
  virtual EventPtr record() = 0;
  // The same, for a host that may wait long: it sleeps instead of polling.
  virtual EventPtr record_for_host() { return record(); }
  virtual void wait(const EventPtr& event) = 0;
  virtual void synchronize() = 0;
  // The native handle: a cudaStream_t, or 0 on the host.
  virtual uintptr_t handle() const = 0;
};
using StreamPtr = std::shared_ptr<Stream>;

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view backend() const = 0;  // "cuda", "cpu"; the same as its folder
  virtual int index() const = 0;
  virtual std::string name() const = 0;  // "cuda:0", "cpu"

  // Allocates device memory, 256-byte aligned. Throws Exception HR0880 if there is not enough.
  // REQUIRES: no queued work uses it when the last pointer is destroyed.
  virtual std::shared_ptr<void> allocate(size_t bytes) = 0;
  // Pins mapped host pages, so that copies from them are asynchronous. False if that fails: then
  // copies still work, but synchronously.
  virtual bool pin(void* pages, size_t bytes) = 0;
  virtual void unpin(void* pages) noexcept = 0;
  virtual size_t free_bytes() const = 0;
  virtual size_t total_bytes() const = 0;

  // Makes a stream that does not wait for the legacy default stream and has the lowest priority, so
  // that the model's work takes precedence.
  virtual StreamPtr make_stream() = 0;
  // A framework's stream, by its handle. REQUIRES: the stream exists as long as the result is used.
  virtual StreamPtr foreign_stream(uintptr_t handle) = 0;
};
using DevicePtr = std::shared_ptr<Device>;

struct DeviceBackend {
  std::string_view name;  // of its devices: "cuda" (the first one), and "cuda:1"
  std::string_view doc;
  bool numbered;  // whether there can be several
  // Throws Exception HR0882 if there is no such device.
  DevicePtr (*open)(int index);
};

// "cpu", "cuda" (the first), "cuda:1". Returns the same object for the same name. Throws Exception
// HR0881 if the name is invalid, HR0882 if there is no such device; the message lists the existing
// ones.
DevicePtr open_device(std::string_view name);

// The host as a device; one object per process.
DevicePtr host_device();

// Throws Exception HR0883: the device has failed, and usually cannot be used any more.
[[noreturn]] void throw_device_failed(const std::string& what);

// Throws Exception HR0882: there is no such device.
[[noreturn]] void throw_no_device(const std::string& what, const std::string& hint);

std::string mebibytes(size_t bytes);  // "12.5 MiB"

// Throws Exception HR0880, which states the requested, free and total bytes.
[[noreturn]] void throw_out_of_memory(const std::string& device, size_t wanted, size_t free,
                                      size_t total);
bool is_out_of_memory(const Exception& exception);

}  // namespace headrace
