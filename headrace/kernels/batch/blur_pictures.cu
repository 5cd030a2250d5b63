// SPDX-License-Identifier: Apache-2.0
// One block per tile: its threads share the rows that were blurred horizontally.
#include "headrace/kernels/batch/blur_pictures.h"
#include "headrace/kernels/batch/launch.cuh"

namespace headrace {
namespace {

__global__ void __launch_bounds__(BlurPictures::kTileThreads)
    blur_tiles(const __grid_constant__ BlurPictures kernel) {
  __shared__ BlurPictures::Rows rows;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t item = blockIdx.x; item < kernel.items(); item += gridDim.x) {
    const BlurPictures::Tile tile = kernel.tile_of(item);
    __syncthreads();  // the previous tile is stored
    kernel.blur_along(tile, thread, rows);
    __syncthreads();
    kernel.blur_across(tile, thread, rows);
  }
}

}  // namespace

template <>
LaunchStatus launch(const BlurPictures& kernel, void* stream) {
  return launch_blocks<BlurPictures>(blur_tiles, kernel, kernel.items(), BlurPictures::kTileThreads,
                                     stream);
}

}  // namespace headrace
