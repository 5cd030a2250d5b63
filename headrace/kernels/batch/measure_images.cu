// SPDX-License-Identifier: Apache-2.0
// One block per part of a plane: its threads count in shared memory, and add to the plane's counts
// once.
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/measure_images.h"

namespace headrace {
namespace {

constexpr int kCountThreads = 256;  // also one thread per value

__global__ void __launch_bounds__(kCountThreads)
    count_values(const __grid_constant__ CountValues kernel) {
  __shared__ uint32_t counts[256];
  const int64_t items = kernel.items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    kernel.add(item, threadIdx.x, kCountThreads, counts);
    __syncthreads();
    const uint32_t counted = counts[threadIdx.x];
    if (counted) words::add(kernel.counts_of(item) + threadIdx.x, counted);
  }
}

}  // namespace

template <>
LaunchStatus launch(const CountValues& kernel, void* stream) {
  return launch_blocks<CountValues>(count_values, kernel, kernel.items(), kCountThreads, stream);
}
template LaunchStatus launch(const MakeMeasuredTables&, void*);

}  // namespace headrace
