// SPDX-License-Identifier: Apache-2.0
// launch() under nvcc. Included only by the .cu files, which have one line per kernel:
//
//   template LaunchStatus launch(const ItsKernel&, void*);
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/kernels/batch/launch.h"

namespace headrace {

inline constexpr int kWarp = 32, kThreads = 256;
// How many of its blocks must fit into a multiprocessor's registers at the same time, if the kernel
// specifies it.
template <class Kernel>
constexpr int resident_blocks(int otherwise) {
  if constexpr (requires { Kernel::kResidentBlocks; }) {
    return Kernel::kResidentBlocks;
  } else {
    return otherwise;
  }
}
// Multiprocessors of the current device; 0 if the CUDA query fails, which makes the launch fail.
inline int multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return 0;
  return count;
}

// One warp per item, looping. __grid_constant__: the kernel's members are read from parameter
// memory, not from a copy in each thread.
template <class Kernel>
__global__ void __launch_bounds__(kThreads, resident_blocks<Kernel>(4))
    run_warps(const __grid_constant__ Kernel kernel) {
  constexpr int kWarps = kThreads / kWarp;
  const int64_t items = kernel.items(), warps = int64_t{gridDim.x} * kWarps;
  const Lane lane{static_cast<int>(threadIdx.x) % kWarp, kWarp};
  for (int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; item < items;
       item += warps) {
    kernel(item, lane);
  }
}

// One thread per item. The compiler chooses the number of registers, unless the kernel sets it.
inline constexpr int kThreadsAlone = 128;
template <class Kernel>
__global__ void __launch_bounds__(kThreadsAlone, resident_blocks<Kernel>(0))
    run_threads(const __grid_constant__ Kernel kernel) {
  const int64_t items = kernel.items(), threads = int64_t{gridDim.x} * kThreadsAlone;
  for (int64_t item = int64_t{blockIdx.x} * kThreadsAlone + threadIdx.x; item < items;
       item += threads) {
    kernel(item);
  }
}

// Launches blocks of a function that takes the kernel; CUDA rejects an empty grid.
template <class Kernel>
LaunchStatus launch_blocks(void (*function)(Kernel), const Kernel& kernel, int64_t blocks,
                           int threads, void* stream) {
  if (blocks == 0) return {};
  const int64_t most = max_blocks(multiprocessors(), threads);
  const dim3 grid(static_cast<unsigned>(blocks < most ? blocks : most));
  void* arguments[] = {const_cast<Kernel*>(&kernel)};
  const cudaError_t status =
      cudaLaunchKernel(reinterpret_cast<const void*>(function), grid, dim3(threads), arguments, 0,
                       static_cast<cudaStream_t>(stream));
  if (status == cudaSuccess) return {};
  (void)cudaGetLastError();  // clears the error, so that a later call does not report it again
  return {.cuda_name = cudaGetErrorName(status), .cuda_text = cudaGetErrorString(status)};
}

template <class Kernel>
LaunchStatus launch(const Kernel& kernel, void* stream) {
  const int64_t items = kernel.items();
  if constexpr (RunsPerThread<Kernel>) {
    return launch_blocks<Kernel>(run_threads<Kernel>, kernel,
                                 (items + kThreadsAlone - 1) / kThreadsAlone, kThreadsAlone,
                                 stream);
  } else {
    constexpr int kWarps = kThreads / kWarp;
    return launch_blocks<Kernel>(run_warps<Kernel>, kernel, (items + kWarps - 1) / kWarps, kThreads,
                                 stream);
  }
}

}  // namespace headrace
