// SPDX-License-Identifier: Apache-2.0
// The simulated device gives the same guarantees as real devices, and no others.
#include "headrace/device/simulated/simulated_device.h"

#include <gtest/gtest.h>

#include <numeric>

#include "headrace/base/error.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

TEST(SimulatedDevice, AStreamKeepsItsOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedDevice device(seed);
    StreamPtr one = device.make_stream(), two = device.make_stream();
    std::vector<int> first, second;
    for (int i = 0; i < 20; ++i) {
      one->run([&first, i] { first.push_back(i); });
      two->run([&second, i] { second.push_back(i); });
    }
    one->synchronize();
    two->synchronize();
    std::vector<int> in_order(20);
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_EQ(first, in_order);
    EXPECT_EQ(second, in_order);
  }
}

TEST(SimulatedDevice, EventsAloneOrderStreams) {
  int early = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedDevice device(seed);
    StreamPtr one = device.make_stream(), two = device.make_stream();
    bool done = false, seen = false, seen_behind_event = false;
    one->run([&] { done = true; });
    EventPtr event = one->record();
    two->run([&] { seen = done; });
    two->wait(event);
    two->run([&] { seen_behind_event = done; });
    two->synchronize();
    early += !seen;
    EXPECT_TRUE(seen_behind_event);
    EXPECT_TRUE(event->done());
  }
  EXPECT_GT(early, 10);  // a reader that does not wait is detected
  EXPECT_LT(early, 50);
}

TEST(SimulatedDevice, TheClockAddsCostsAlongDependencies) {
  SimulatedDevice device(1, {.bytes_per_second = 1000});
  StreamPtr one = device.make_stream(), two = device.make_stream();
  std::vector<uint8_t> from(5000), to(5000);
  one->copy(to.data(), from.data(), 5000);  // 5 s
  two->run([] {}, 2);
  two->wait(one->record());
  two->run([] {}, 3);
  two->synchronize();
  const std::vector<SimulatedWork> done = device.timeline();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_DOUBLE_EQ(done.back().begin, 5);
  EXPECT_DOUBLE_EQ(done.back().end, 8);
}

TEST(SimulatedDevice, ReturnedMemoryIsOverwritten) {
  SimulatedDevice device(3);
  StreamPtr stream = device.make_stream();
  auto memory = device.allocate(4096);
  auto* bytes = static_cast<uint8_t*>(memory.get());
  uint8_t read = 0;
  // Whatever is queued after this may be late.
  StreamPtr other = device.make_stream();
  EventPtr never_before;
  stream->wait(never_before = other->record());
  stream->run([&] { read = bytes[100]; });
  memory.reset();
  stream->synchronize();
  EXPECT_TRUE(read == 0 || read == 0xDD);
  EXPECT_EQ(device.allocated_bytes(), 0u);
  EXPECT_EQ(device.peak_bytes(), 4096u);
}

TEST(Device, InvalidAndMissingDevicesAreErrors) {
  EXPECT_EQ(open_device("cpu"), host_device());
  const auto code_of = [](std::string_view name) {
    try {
      open_device(name);
    } catch (const Exception& failure) {
      return std::string(failure.error().code->id);
    }
    return std::string();
  };
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "CUDA"}) {
    EXPECT_EQ(code_of(name), "HR0881") << name;
  }
  EXPECT_EQ(code_of("cuda:9999"), "HR0882");
  const CudaDevices found = cuda_devices();
  EXPECT_EQ(found.why_none.empty(), found.count > 0);
}

TEST(Device, ADriverThatIsTooOldIsNamedWithBothVersions) {
  EXPECT_EQ(reason_of_driver(0, 13000), "no NVIDIA driver found (libcuda.so.1)");
  EXPECT_EQ(reason_of_driver(12020, 13000),
            "the driver is too old (it supports CUDA 12.2, but 13.0 is needed)");
}

TEST(Device, TheHostRunsEverythingSynchronously) {
  DevicePtr host = host_device();
  StreamPtr stream = host->make_stream();
  const std::vector<uint8_t> from = {1, 2, 3};
  auto memory = host->allocate(3);
  stream->copy(memory.get(), from.data(), 3);
  EXPECT_EQ(static_cast<uint8_t*>(memory.get())[2], 3);
  EXPECT_TRUE(stream->record()->done());
  EXPECT_GT(host->free_bytes(), 0u);
}

}  // namespace
}  // namespace headrace
