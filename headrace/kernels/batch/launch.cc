// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.h"

#include <algorithm>
#include <atomic>

namespace headrace {
namespace {

const ErrorCode kRefused{
    "HR0860", ErrorKind::kResource, "CUDA kernel launch failed",
    "A kernel could not be launched. If CUDA reports an error that this launch cannot cause (an "
    "illegal address, a lost device), an earlier call on this device failed, and every later call "
    "repeats its error; CUDA_LAUNCH_BLOCKING=1 shows which call failed first. `no kernel image` "
    "means a GPU older than those the library is built for."};

const ErrorCode kNoKernels{
    "HR0861", ErrorKind::kUnsupported, "built without CUDA",
    "This build of the library has no GPU kernels, because nvcc 13.3 or newer was not found when "
    "it was built (HEADRACE_CUDA=ON makes that an error). Everything else works; device=\"cpu\" "
    "runs the same kernels on the CPU."};

std::atomic<int> threads_of_multiprocessor{kThreadsOfMultiprocessor};

}  // namespace

void bound_grids(int threads) { threads_of_multiprocessor = threads; }

int64_t max_blocks(int multiprocessors, int threads) {
  return int64_t{std::max(multiprocessors, 1)} * std::max(threads_of_multiprocessor / threads, 1);
}

Result<void> result_of(const LaunchStatus& status) {
  if (!status.has_kernels) {
    return Error{.code = &kNoKernels,
                 .what = "a batch kernel is needed on a GPU, but this build has none",
                 .hint = "build with nvcc on the PATH, or use device=\"cpu\""};
  }
  if (!status.cuda_name) return {};
  return Error{.code = &kRefused, .what = std::string(status.cuda_name) + ": " + status.cuda_text};
}

}  // namespace headrace
