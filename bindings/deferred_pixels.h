// SPDX-License-Identifier: Apache-2.0
// The current values of a deferred image. REQUIRES: the GIL.
#pragma once

#include <optional>

#include "bindings/bindings.h"
#include "headrace/image/deferred_picture.h"

namespace headrace::python {

// Nullopt if its decoder has repaired damage. Throws Exception if it cannot be decoded.
std::optional<Array> pixels_of(const DeferredPicture& picture, bool channels_last = false);

}  // namespace headrace::python
