// SPDX-License-Identifier: Apache-2.0
// The current values of a deferred image. With the GIL.
#pragma once

#include <optional>

#include "bindings/bindings.h"
#include "headrace/image/deferred_picture.h"

namespace headrace::python {

// None where its decoder has repaired damage. Throws Exception where there are no pixels.
std::optional<Array> pixels_of(const DeferredPicture& picture, bool channels_last = false);

}  // namespace headrace::python
