// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/device_jpeg/clear_words.h"

namespace headrace {

template Result<void> launch(const ClearWords&, void*);

}  // namespace headrace
