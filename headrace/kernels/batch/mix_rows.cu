// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/mix_rows.h"

namespace headrace {

template Result<void> launch(const MixRows&, void*);

}  // namespace headrace
