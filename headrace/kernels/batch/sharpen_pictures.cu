// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.cuh"
#include "headrace/kernels/batch/sharpen_pictures.h"

namespace headrace {

template Result<void> launch(const SharpenPictures&, void*);

}  // namespace headrace
