// SPDX-License-Identifier: Apache-2.0
// The devices on which tests run batch kernels: the CPU, with the work divided in ways a GPU might,
// and a GPU if there is one. All must give the same bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"
#include "headrace/kernels/batch/launch.h"

namespace headrace {

enum class TestDevice {
  kLoop,      // as the CPU runs it
  kRanges,    // in chunks, the last first, as threads might run them
  kWarps,     // 32 lanes, all in reverse order
  kOddWarps,  // five lanes: no row length is a multiple of it
  kGpu,
};

inline std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> there{TestDevice::kLoop, TestDevice::kRanges, TestDevice::kWarps,
                                TestDevice::kOddWarps};
  if (cuda_devices().count > 0) there.push_back(TestDevice::kGpu);
  return there;
}

inline std::string test_device_name(const testing::TestParamInfo<TestDevice>& info) {
  static const char* const names[] = {"Loop", "Ranges", "Warps", "OddWarps", "Gpu"};
  return names[static_cast<int>(info.param)];
}

template <class Kernel>
void run_backwards(const Kernel& kernel, int lanes) {
  for (int64_t item = kernel.items(); item-- > 0;) {
    if constexpr (RunsPerThread<Kernel>) {
      kernel(item);
    } else {
      for (int lane = lanes; lane-- > 0;) kernel(item, Lane{lane, lanes});
    }
  }
}

template <class Kernel>
void run_in_ranges(const Kernel& kernel) {
  const int64_t items = kernel.items(), piece = 7;
  for (int64_t end = items; end > 0; end -= piece) {
    run_items(kernel, end > piece ? end - piece : 0, end);
  }
}

// Allocates the test's memory on the CPU or the GPU and runs kernels there. On the CPU each buffer
// is a separate allocation, so that AddressSanitizer detects out-of-bounds accesses.
class OnTestDevice : public testing::TestWithParam<TestDevice> {
 protected:
  bool on_gpu() const { return GetParam() == TestDevice::kGpu; }

  void SetUp() override {
    if (!on_gpu()) return;
    gpu_ = open_device("cuda");
    stream_ = gpu_->make_stream();
  }

  // A copy of the values that kernels can read, `skew` bytes after an aligned address.
  template <class T>
  T* put(const std::vector<T>& values, size_t skew = 0) {
    const size_t bytes = values.size() * sizeof(T);
    char* const there = allocate(bytes + skew) + skew;
    if (on_gpu()) {
      stream_->copy(there, values.data(), bytes);
      stream_->synchronize();
    } else if (bytes) {
      std::memcpy(there, values.data(), bytes);
    }
    return reinterpret_cast<T*>(there);
  }

  // Memory for a kernel's output, filled with a pattern that reveals what was not written.
  template <class T>
  T* room(size_t count, size_t skew = 0) {
    std::vector<T> pattern(count);
    if (count) std::memset(pattern.data(), 0xa5, count * sizeof(T));
    return put(pattern, skew);
  }

  template <class T>
  std::vector<T> get(const T* there, size_t count) {
    std::vector<T> values(count);
    if (on_gpu()) {
      stream_->copy(values.data(), there, count * sizeof(T));
      stream_->synchronize();
    } else if (count) {
      std::memcpy(values.data(), there, count * sizeof(T));
    }
    return values;
  }

  template <class Kernel>
  void run_here(const Kernel& kernel) {
    switch (GetParam()) {
      case TestDevice::kGpu: {
        const Result<void> queued =
            run(kernel, Target::stream(reinterpret_cast<void*>(stream_->handle())));
        ASSERT_TRUE(queued) << queued.error().message();
        stream_->synchronize();
        return;
      }
      case TestDevice::kRanges:
        return run_in_ranges(kernel);
      case TestDevice::kWarps:
        return run_backwards(kernel, 32);
      case TestDevice::kOddWarps:
        return run_backwards(kernel, 5);
      default:
        ASSERT_TRUE(run(kernel, Target::host()));
    }
  }

 private:
  char* allocate(size_t bytes) {
    if (on_gpu()) {
      kept_.push_back(gpu_->allocate(bytes + 1));
    } else {
      const auto free_it = [](void* block) { ::operator delete(block, std::align_val_t{64}); };
      kept_.emplace_back(::operator new(bytes, std::align_val_t{64}), free_it);
    }
    return static_cast<char*>(kept_.back().get());
  }

  DevicePtr gpu_;
  StreamPtr stream_;
  std::vector<std::shared_ptr<void>> kept_;  // shared_ptr, because that is what Device returns
};

// Random numbers that are the same on every machine.
class TestDraws {
 public:
  explicit TestDraws(uint32_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  template <class T>
  std::vector<T> values(size_t count) {
    std::vector<T> drawn(count);
    for (T& value : drawn) value = static_cast<T>(engine_());
    return drawn;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace headrace
