// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/warp_pictures.h"

namespace headrace {

template Result<void> launch(const WarpPictures&, void*);

}  // namespace headrace
