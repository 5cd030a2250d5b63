// SPDX-License-Identifier: Apache-2.0
// The launches of this folder's kernels that are one function an item, and nothing else on a GPU.
// Together: each file of kernels includes CUDA's headers once for each architecture.
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/clear_words.h"
#include "headrace/kernels/device_jpeg/color_pixels.h"
#include "headrace/kernels/device_jpeg/sum_dc.h"
#include "headrace/kernels/device_jpeg/transform_blocks.h"
#include "headrace/kernels/device_jpeg/walk_entry.h"

namespace headrace {

template Result<void> launch(const ClearWords&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kPlain>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kDoubled>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kAny>&, void*);
template Result<void> launch(const MakeTables&, void*);
template Result<void> launch(const SumDc&, void*);
template Result<void> launch(const TransformBlocks&, void*);

}  // namespace headrace
