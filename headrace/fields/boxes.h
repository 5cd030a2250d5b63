// SPDX-License-Identifier: Apache-2.0
// Operations on boxes other than geometric moves.
#pragma once

#include "headrace/fields/record.h"

namespace headrace {

// Clamps boxes to the canvas, like torchvision's clamp_bounding_boxes. REQUIRES: boxes in pixels,
// with a dtype that is_movable().
void clamp_boxes(FieldValue& value, Size canvas, Clamping clamping);

}  // namespace headrace
