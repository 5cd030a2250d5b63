// SPDX-License-Identifier: Apache-2.0
// Launches those kernels of this folder that are a single function per item. All in one file, since
// each file of kernels includes CUDA's headers once per architecture.
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/clear_words.h"
#include "headrace/kernels/device_jpeg/color_pixels.h"
#include "headrace/kernels/device_jpeg/sum_dc.h"
#include "headrace/kernels/device_jpeg/transform_blocks.h"
#include "headrace/kernels/device_jpeg/walk_entry.h"

namespace headrace {

template LaunchStatus launch(const ClearWords&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kPlain>&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kDoubled>&, void*);
template LaunchStatus launch(const ColorPixels<ColorKind::kAny>&, void*);
template LaunchStatus launch(const MakeTables&, void*);
template LaunchStatus launch(const SumDc&, void*);
template LaunchStatus launch(const TransformBlocks&, void*);

}  // namespace headrace
