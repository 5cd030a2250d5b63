// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/color_pixels.h"

namespace headrace {

template Result<void> launch(const ColorPixels<ColorKind::kPlain>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kDoubled>&, void*);
template Result<void> launch(const ColorPixels<ColorKind::kAny>&, void*);

}  // namespace headrace
