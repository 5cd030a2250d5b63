// SPDX-License-Identifier: Apache-2.0
// A block a picture: its threads share the picture's tables, which lie in shared memory, and take
// its rows in turn.
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/walk_rows.h"

namespace headrace {
namespace {

constexpr int kWalkThreads = 64;

class TablesInShared {
 public:
  // The move keeps the address in a register; without it sm_100 and later compute it at every step.
  __device__ explicit TablesInShared(const WalkTables& tables) {
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&tables));
    asm volatile("mov.u32 %0, %1;" : "=r"(begin_) : "r"(at));
  }
  __device__ uint32_t begin() const { return begin_; }
  __device__ uint32_t word(uint32_t address, uint32_t i) const {
    uint32_t at, value;
    asm("mad.lo.u32 %0, %1, 4, %2;" : "=r"(at) : "r"(i), "r"(address));
    asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
    return value;
  }
  __device__ uint32_t byte(uint32_t address) const {
    uint32_t value;
    asm("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address));
    return value;
  }

 private:
  uint32_t begin_;
};

__global__ void __launch_bounds__(kWalkThreads)
    walk_pictures(const __grid_constant__ WalkRows kernel) {
  __shared__ alignas(256) WalkTables tables;
  for (int64_t i = blockIdx.x; i < kernel.picture_count; i += gridDim.x) {
    const uint4* const from = reinterpret_cast<const uint4*>(kernel.tables + i);
    __syncthreads();  // nobody walks by the tables of the picture before
    HEADRACE_ROLLED
    for (int at = threadIdx.x; at < int(sizeof(tables) / sizeof(uint4)); at += kWalkThreads) {
      reinterpret_cast<uint4*>(&tables)[at] = from[at];
    }
    __syncthreads();
    const DevicePicture& picture = kernel.pictures[i];
    for (int row = threadIdx.x; row < picture.jobs; row += kWalkThreads) {
      kernel.walk(TablesInShared(tables), int64_t{picture.first_job} + row);
    }
  }
}

}  // namespace

template <>
Result<void> launch(const WalkRows& kernel, void* stream) {
  return launch_blocks<WalkRows>(walk_pictures, kernel, kernel.picture_count, kWalkThreads, stream);
}

}  // namespace headrace
