// SPDX-License-Identifier: Apache-2.0
// A device as the engine sees it: memory, streams of work, and events that mark positions in
// them.
//
// A backend is a folder: cuda/, host/ (the host itself, where work runs when it is queued) and
// simulated/, which completes work as late and as much out of order as the rules allow. What is
// proven on the simulated one holds on a real one. Backends whose devices have names register a
// DeviceBackend. What only one backend has (a CUDA stream) is declared in its folder.
//
// Work queued in one stream runs in order; work of two streams at any time, but for events: what a
// stream queues after wait(event) begins when everything before the event is done. Nothing here
// blocks the host except Event::wait_on_host, Stream::synchronize and allocation. Everything is
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace headrace {

// A place in a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void wait_on_host() const = 0;
};
using EventPtr = std::shared_ptr<const Event>;
// On the host, for destructors: a device that has failed does nothing any more, and says so at its
// next use.
void wait_until_done(const Event& event) noexcept;

class Stream {
 public:
  virtual ~Stream() = default;
  // Queues a copy between the host and the device, or within one of them. REQUIRES: neither range
  // is reused before an event after it is done.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Queues a function, which runs in its turn; one that queues work of the device itself (kernels)
  // is called at once, on the device. `cost` is for simulated clocks.
  virtual void run(std::function<void()> work, double cost = 0) = 0;
  virtual EventPtr record() = 0;
  // The same, for a host that may wait long: it sleeps meanwhile, rather than ask all the time.
  virtual EventPtr record_for_host() { return record(); }
  virtual void wait(const EventPtr& event) = 0;
  virtual void synchronize() = 0;
  // The framework's name for it: a cudaStream_t, or 0 on the host.
  virtual uintptr_t handle() const = 0;
};
using StreamPtr = std::shared_ptr<Stream>;

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view backend() const = 0;  // "cuda", "cpu"; its folder's
  virtual int index() const = 0;
  virtual std::string name() const = 0;  // "cuda:0", "cpu"

  // Device memory, 256-byte aligned. Throws Exception HR0880 when there is not enough.
  // REQUIRES for dropping it: no queued work uses it.
  virtual std::shared_ptr<void> allocate(size_t bytes) = 0;
  // Makes mapped pages of the host such that copies from them run by themselves (pinned). False
  // where that is refused: then copies still work, and wait for the host.
  virtual bool pin(void* pages, size_t bytes) = 0;
  virtual void unpin(void* pages) noexcept = 0;
  virtual size_t free_bytes() const = 0;
  virtual size_t total_bytes() const = 0;

  // A stream of our own, which does not wait for the legacy default stream and has the lowest
  // priority that there is: what is queued in it comes after the model's, where they compete.
  virtual StreamPtr make_stream() = 0;
  // A stream of a framework's, by its handle. REQUIRES: it lives while this is used.
  virtual StreamPtr foreign_stream(uintptr_t handle) = 0;
};
using DevicePtr = std::shared_ptr<Device>;

struct DeviceBackend {
  std::string_view name;  // of its devices: "cuda", which is the first, and "cuda:1"
  std::string_view doc;
  bool numbered;  // whether there can be several
  // Throws Exception HR0882 where there is no such device.
  DevicePtr (*open)(int index);
};

// "cpu", "cuda" (the first), "cuda:1". The same object for the same name. Throws Exception HR0881
// where the name makes no sense, HR0882 where there is no such device, with what is there.
DevicePtr open_device(std::string_view name);

// Throws Exception HR0883: a device that has failed, and mostly does nothing any more.
[[noreturn]] void throw_device_failed(const std::string& what);

// Throws Exception HR0882: there is no such device.
[[noreturn]] void throw_no_device(const std::string& what, const std::string& hint);

}  // namespace headrace
