// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/launch.cuh"

namespace headrace {

template Result<void> launch(const ComposeTables&, void*);

}  // namespace headrace
