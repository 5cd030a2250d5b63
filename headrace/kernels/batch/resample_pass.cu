// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/resample_pass.h"

namespace headrace {

template Result<void> launch(const ResamplePass&, void*);

}  // namespace headrace
