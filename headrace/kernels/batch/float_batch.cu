// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/float_batch.h"
#include "headrace/kernels/batch/launch.cuh"

namespace headrace {

template Result<void> launch(const FloatBatch&, void*);

}  // namespace headrace
