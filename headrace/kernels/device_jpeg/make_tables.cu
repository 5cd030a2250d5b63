// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/walk_entry.h"

namespace headrace {

template Result<void> launch(const MakeTables&, void*);

}  // namespace headrace
