// SPDX-License-Identifier: Apache-2.0
// Changes of boxes other than geometric moves.
#pragma once

#include "headrace/fields/record.h"

namespace headrace {

// Puts what lies beyond the canvas on its edge, as torchvision's clamp_bounding_boxes does.
// REQUIRES: boxes of pixels, of a dtype that moves.
void clamp_boxes(FieldValue& value, Size canvas, Clamping clamping);

}  // namespace headrace
