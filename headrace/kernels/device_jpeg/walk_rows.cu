// SPDX-License-Identifier: Apache-2.0
// One block per group: its threads share the image's tables, in shared memory, and decode one
// segment each.
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/walk_rows.h"

namespace headrace {
namespace {

constexpr int kWalkThreads = WalkGroup::kMax;

class TablesInShared {
 public:
  // The move keeps the address in a register; without it, sm_100 and later recompute it at every
  // step.
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

// A warp clears its lanes' blocks, segment by segment.
__device__ void clear_together(int16_t* blocks, uint32_t first, int32_t pieces) {
  const auto own_lane = static_cast<int32_t>(threadIdx.x) % kWarp;
  HEADRACE_ROLLED
  for (int lane = 0; lane < kWarp; ++lane) {
    WalkRows::clear(blocks, __shfl_sync(~0u, first, lane), __shfl_sync(~0u, pieces, lane), own_lane,
                    kWarp);
  }
}

__global__ void __launch_bounds__(kWalkThreads)
    walk_groups(const __grid_constant__ WalkRows kernel) {
  __shared__ alignas(256) WalkTables tables;
  for (int64_t i = blockIdx.x; i < kernel.group_count; i += gridDim.x) {
    const WalkGroup group = kernel.groups[i];
    const DeviceImage& image = kernel.images[group.image];
    const RowJob* const job = kernel.jobs + group.first_job + threadIdx.x;
    const bool walks = threadIdx.x < group.jobs;
    const uint4* const from = reinterpret_cast<const uint4*>(kernel.tables + group.image);
    __syncthreads();  // no thread is using the previous group's tables any more
    HEADRACE_ROLLED
    for (int at = threadIdx.x; at < int(sizeof(tables) / sizeof(uint4)); at += kWalkThreads) {
      reinterpret_cast<uint4*>(&tables)[at] = from[at];
    }
    clear_together(kernel.blocks_of(image), walks ? job->first_block : 0,
                   walks ? WalkRows::pieces(image, *job) : 0);
    __syncthreads();
    if (walks) kernel.walk(TablesInShared(tables), group.image, *job);
  }
}

}  // namespace

template <>
LaunchStatus launch(const WalkRows& kernel, void* stream) {
  return launch_blocks<WalkRows>(walk_groups, kernel, kernel.group_count, kWalkThreads, stream);
}

}  // namespace headrace
