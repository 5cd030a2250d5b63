// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/run_programs.h"

namespace headrace {

template Result<void> launch(const RunPrograms&, void*);

}  // namespace headrace
