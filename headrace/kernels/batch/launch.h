// SPDX-License-Identifier: Apache-2.0
// Runs a batch kernel: as a loop on this thread, or on a stream of a GPU. Kernels have one of two
// forms: a warp an item, whose lanes share it (lanes.h), or a thread an item, a plain function
//
//   HEADRACE_HD void operator()(int64_t item) const;
//
// Any thread may run any kernel. The memory that a kernel names must be readable and writable where
// it runs, and stay until it is through: on a stream that is after run() has returned.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/lanes.h"

namespace headrace {

template <class Kernel>
concept TakesThreads = requires(const Kernel& kernel) { kernel(int64_t{}); };

// Items [begin, end) of the kernel, here and now; threads may divide the items among them.
template <class Kernel>
void run_items(const Kernel& kernel, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) {
    if constexpr (TakesThreads<Kernel>) {
      kernel(item);
    } else {
      kernel(item, Lane{});
    }
  }
}

// How many threads of a launch each multiprocessor of a GPU gets; loops in the kernels take what is
// beyond. So what a model queues waits for one wave of ours at most, and fewer threads leave it
// room beside ours. Default: as many as a multiprocessor holds. REQUIRES: threads > 0.
inline constexpr int kThreadsOfMultiprocessor = 2048;
void bound_grids(int threads_of_multiprocessor);
// The most blocks of so many threads, one a multiprocessor at least.
int64_t most_blocks(int multiprocessors, int threads);

// Enqueues the kernel on a cudaStream_t (null: the default stream) of the current device. HR0860
// where CUDA refuses it, HR0861 in a build without nvcc. One definition for each kernel, in its .cu
// file or in no_cuda.cc.
template <class Kernel>
Result<void> launch(const Kernel& kernel, void* stream);

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
  if (target.is_device()) return launch(kernel, target.stream());
  run_items(kernel, 0, kernel.items());
  return {};
}

// For the definitions of launch().
Error kernel_refused(const char* cuda_name, const char* cuda_text);  // HR0860
Error no_device_kernels();                                           // HR0861

}  // namespace headrace
