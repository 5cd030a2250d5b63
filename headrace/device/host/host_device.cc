// SPDX-License-Identifier: Apache-2.0
// The host as a device: work runs when it is queued, so every event is complete immediately.
#include <cstring>
#include <new>

#include "headrace/base/pages.h"
#include "headrace/base/process_limits.h"
#include "headrace/base/registry.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

class DoneEvent final : public Event {
 public:
  bool done() const override { return true; }
  void wait_on_host() const override {}
};

class HostStream final : public Stream {
 public:
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void run(std::function<void()> work, double) override { work(); }
  EventPtr record() override { return std::make_shared<DoneEvent>(); }
  void wait(const EventPtr& event) override { event->wait_on_host(); }
  void synchronize() override {}
  uintptr_t handle() const override { return 0; }
};

class HostDevice final : public Device {
 public:
  std::string_view backend() const override { return "cpu"; }
  int index() const override { return 0; }
  std::string name() const override { return "cpu"; }
  std::shared_ptr<void> allocate(size_t bytes) override {
    return {map_pages(bytes), [bytes](void* pages) { unmap_pages(pages, bytes); }};
  }
  bool pin(void*, size_t) override { return true; }  // nothing ever waits
  void unpin(void*) noexcept override {}
  size_t free_bytes() const override { return available_memory(); }
  size_t total_bytes() const override { return available_memory(); }
  StreamPtr make_stream() override { return std::make_shared<HostStream>(); }
  StreamPtr foreign_stream(uintptr_t) override { return make_stream(); }
};

const DeviceBackend kHost{.name = "cpu",
                          .doc = "The host's own memory, without a GPU.",
                          .numbered = false,
                          .open = [](int) { return host_device(); }};
const Register<DeviceBackend> registered_host(kHost);

}  // namespace

DevicePtr host_device() {
  static const DevicePtr device = std::make_shared<HostDevice>();
  return device;
}

}  // namespace headrace
