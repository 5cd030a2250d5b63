// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/resample_columns.h"

namespace headrace {

template Result<void> launch(const ResampleColumns<SampleLayout::kWords>&, void*);
template Result<void> launch(const ResampleColumns<SampleLayout::kAny>&, void*);

}  // namespace headrace
