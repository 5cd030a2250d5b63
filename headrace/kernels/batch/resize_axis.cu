// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/resize_axis.h"

namespace headrace {

template Result<void> launch(const MakeResizeTables&, void*);

}  // namespace headrace
