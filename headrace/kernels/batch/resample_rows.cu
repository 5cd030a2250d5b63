// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/resample_rows.h"

namespace headrace {

template Result<void> launch(const ResampleRows<SampleLayout::kWords>&, void*);
template Result<void> launch(const ResampleRows<SampleLayout::kAny>&, void*);

}  // namespace headrace
