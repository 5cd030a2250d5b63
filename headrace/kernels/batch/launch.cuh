// SPDX-License-Identifier: Apache-2.0
// What launch() is under nvcc. Included by the .cu files alone, each of which ends with
//
//   template Result<void> launch(const ItsKernel&, void*);
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/kernels/batch/launch.h"

namespace headrace {

// Four such blocks of eight warps find their registers in a multiprocessor at the same time.
inline constexpr int kWarp = 32, kThreads = 256, kResidentBlocks = 4;
// Enough to fill any GPU several times over; whatever is left is taken by the loop in the kernel.
inline constexpr int64_t kMostBlocks = 1 << 20;

// A warp for each item, in turn. __grid_constant__: the kernel's members are read from where the
// parameters lie, not from a copy in each thread.
template <class Kernel>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    run_warps(const __grid_constant__ Kernel kernel) {
  constexpr int kWarps = kThreads / kWarp;
  const int64_t items = kernel.items(), warps = int64_t{gridDim.x} * kWarps;
  const Lane lane{static_cast<int>(threadIdx.x) % kWarp, kWarp};
  for (int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; item < items;
       item += warps) {
    kernel(item, lane);
  }
}

template <class Kernel>
Result<void> launch(const Kernel& kernel, void* stream) {
  const int64_t items = kernel.items();
  if (items == 0) return {};  // CUDA refuses a grid without blocks
  constexpr int kWarps = kThreads / kWarp;
  const int64_t blocks = (items + kWarps - 1) / kWarps;
  const dim3 grid(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
  void* arguments[] = {const_cast<Kernel*>(&kernel)};
  const cudaError_t status =
      cudaLaunchKernel(reinterpret_cast<const void*>(&run_warps<Kernel>), grid, dim3(kThreads),
                       arguments, 0, static_cast<cudaStream_t>(stream));
  if (status == cudaSuccess) return {};
  (void)cudaGetLastError();  // reported here, it must not show up at somebody's next call
  return kernel_refused(cudaGetErrorName(status), cudaGetErrorString(status));
}

}  // namespace headrace
