// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {

template Result<void> launch(const PictureBatch&, void*);

}  // namespace headrace
