// SPDX-License-Identifier: Apache-2.0
// A device in the host's memory, whose streams execute work immediately: "template:0" to
// "template:3".
#include <cstring>

#include "headrace/base/pages.h"
#include "headrace/base/process_limits.h"
#include "headrace/base/registry.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

constexpr int kDevices = 4;

// The events of an asynchronous device complete later.
class TemplateEvent final : public Event {
 public:
  bool done() const override { return true; }
  void wait_on_host() const override {}
};

class TemplateStream final : public Stream {
 public:
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void run(std::function<void()> work, double) override { work(); }
  EventPtr record() override { return std::make_shared<TemplateEvent>(); }
  void wait(const EventPtr& event) override { event->wait_on_host(); }
  void synchronize() override {}
  uintptr_t handle() const override { return 0; }
};

class TemplateDevice final : public Device {
 public:
  explicit TemplateDevice(int index) : index_(index) {}

  std::string_view backend() const override { return "template"; }
  int index() const override { return index_; }
  std::string name() const override { return "template:" + std::to_string(index_); }
  std::shared_ptr<void> allocate(size_t bytes) override {
    return {map_pages(bytes), [bytes](void* pages) { unmap_pages(pages, bytes); }};
  }
  bool pin(void*, size_t) override { return true; }
  void unpin(void*) noexcept override {}
  size_t free_bytes() const override { return available_memory(); }
  size_t total_bytes() const override { return available_memory(); }
  StreamPtr make_stream() override { return std::make_shared<TemplateStream>(); }
  StreamPtr foreign_stream(uintptr_t) override { return make_stream(); }

 private:
  const int index_;
};

const DeviceBackend kTemplateDevices{.name = "template",
                                     .doc = "Devices in the host's memory.",
                                     .numbered = true,
                                     .open = [](int index) -> DevicePtr {
                                       if (index >= kDevices)
                                         throw_no_device("there are four template devices",
                                                         "\"template:3\"");
                                       return std::make_shared<TemplateDevice>(index);
                                     }};
const Register<DeviceBackend> registered_template_devices(kTemplateDevices);

}  // namespace
}  // namespace headrace
