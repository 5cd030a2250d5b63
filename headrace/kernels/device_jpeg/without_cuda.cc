// SPDX-License-Identifier: Apache-2.0
// The launches of a build without nvcc, in place of all .cu files of this folder.
#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/device_jpeg/clear_words.h"
#include "headrace/kernels/device_jpeg/color_pixels.h"
#include "headrace/kernels/device_jpeg/sum_dc.h"
#include "headrace/kernels/device_jpeg/transform_blocks.h"
#include "headrace/kernels/device_jpeg/walk_rows.h"

namespace headrace {

template <class Kernel>
Result<void> launch(const Kernel&, void*) {
  return no_device_kernels();
}

template Result<void> launch(const ClearWords&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kPlain>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kDoubled>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kAny>&, void*);
template Result<void> launch(const MakeTables&, void*);
template Result<void> launch(const SumDc&, void*);
template Result<void> launch(const TransformBlocks&, void*);
template Result<void> launch(const WalkRows&, void*);

}  // namespace headrace
