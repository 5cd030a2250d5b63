// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/gather_rows.h"
#include "headrace/kernels/batch/launch.cuh"

namespace headrace {

template Result<void> launch(const GatherRows&, void*);

}  // namespace headrace
