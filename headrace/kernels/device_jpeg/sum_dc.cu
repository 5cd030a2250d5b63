// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/sum_dc.h"

namespace headrace {

template Result<void> launch(const SumDc&, void*);

}  // namespace headrace
