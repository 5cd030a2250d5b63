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
LaunchStatus launch(const Kernel&, void*) {
  return {.has_kernels = false};
}

template LaunchStatus launch(const ClearWords&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kPlain>&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kDoubled>&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kAny>&, void*);
template LaunchStatus launch(const MakeTables&, void*);
template LaunchStatus launch(const SumDc&, void*);
template LaunchStatus launch(const TransformBlocks&, void*);
template LaunchStatus launch(const WalkRows&, void*);

}  // namespace headrace
