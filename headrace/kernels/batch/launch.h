// SPDX-License-Identifier: Apache-2.0
// Runs a batch kernel: as a loop on this thread, or on a stream of a GPU. Kernels have one of two
// forms: one warp per item, whose lanes share it (lanes.h), or one thread per item, with a plain
// member function
//
//   HEADRACE_HD void operator()(int64_t item) const;
//
// Any thread may run any kernel. The memory that a kernel refers to must be accessible where it
// runs, and stay valid until it completes, which on a stream is after run() has returned.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/lanes.h"

namespace headrace {

template <class Kernel>
concept RunsPerThread = requires(const Kernel& kernel) { kernel(int64_t{}); };

// Runs items [begin, end) of the kernel synchronously; several threads may split the items.
template <class Kernel>
void run_items(const Kernel& kernel, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) {
    if constexpr (RunsPerThread<Kernel>) {
      kernel(item);
    } else {
      kernel(item, Lane{});
    }
  }
}

// Limits a launch's threads per GPU multiprocessor; kernels loop over the remaining items. A
// model's queued work then waits for at most one wave of ours, and a lower limit leaves it room to
// run concurrently. Default: as many as a multiprocessor holds. REQUIRES: threads > 0.
inline constexpr int kThreadsOfMultiprocessor = 2048;
void bound_grids(int threads_of_multiprocessor);
// Maximum number of blocks with this many threads each; at least one per multiprocessor.
int64_t max_blocks(int multiprocessors, int threads);

// CUDA's answer to a launch. Plain C types only: in a wheel, the .cu files have another C++
// standard library than everything else.
struct [[nodiscard]] LaunchStatus {
  bool has_kernels = true;          // false in a build without nvcc
  const char* cuda_name = nullptr;  // the error's name and text, constants; null: launched
  const char* cuda_text = nullptr;
};

// Enqueues the kernel on a cudaStream_t (null: the default stream) of the current device. One
// definition per kernel, in its .cu file or in without_cuda.cc.
template <class Kernel>
LaunchStatus launch(const Kernel& kernel, void* stream);

// The error of a launch: HR0860 if CUDA failed, HR0861 in a build without nvcc.
Result<void> result_of(const LaunchStatus& status);

class Target {
 public:
  static Target host() { return Target(false, nullptr); }
  static Target stream(void* cuda_stream) { return Target(true, cuda_stream); }

  bool is_device() const { return is_device_; }
  void* stream() const { return stream_; }

 private:
  Target(bool is_device, void* stream) : is_device_(is_device), stream_(stream) {}
  bool is_device_;
  void* stream_;
};

template <class Kernel>
Result<void> run(const Kernel& kernel, Target target) {
  if (target.is_device()) return result_of(launch(kernel, target.stream()));
  run_items(kernel, 0, kernel.items());
  return {};
}

}  // namespace headrace
