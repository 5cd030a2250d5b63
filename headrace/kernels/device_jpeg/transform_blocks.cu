// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/transform_blocks.h"

namespace headrace {

template Result<void> launch(const TransformBlocks&, void*);

}  // namespace headrace
