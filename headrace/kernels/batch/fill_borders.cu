// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/fill_borders.h"
#include "headrace/kernels/batch/launch.cuh"

namespace headrace {

template Result<void> launch(const FillBorders&, void*);

}  // namespace headrace
