// SPDX-License-Identifier: Apache-2.0
// What steps do to boxes beside moving them.
#pragma once

#include "headrace/fields/record.h"

namespace headrace {

// Puts every corner on the canvas, as torchvision's clamp_bounding_boxes does for boxes that are
// not rotated. REQUIRES: boxes of pixels, of a dtype that moves.
void clamp_boxes(FieldValue& value, Size canvas);

}  // namespace headrace
