// SPDX-License-Identifier: Apache-2.0
// Shared by the kinds whose values are pictures: a value is a recipe.
#pragma once

#include <optional>

#include "headrace/fields/begin.h"
#include "headrace/fields/geometry.h"
#include "headrace/fields/kind.h"

namespace headrace {

// KindRecord::take of an image or mask.
bool take_picture(Field& field, FieldKind kind);

// KindRecord::begin of pictures: opens the encoded picture, or takes the pixels. HR0121 where it
// has not the channels of `state`.
Result<void> begin_picture(const Beginning& from, FieldValue& value);

// The form to which an encoded picture is decoded.
struct PictureForm {
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;
  int channels = 3;
};
// Form of the kind's pictures in this mode, except kStored, in which each file has its own.
PictureForm picture_form(PictureMode mode, FieldKind kind);
// Form of the picture with this header. HR0121 for an invalid mask; HR0135 if kStored has no
// form for it.
Result<PictureForm> picture_form(PictureMode mode, FieldKind kind, const ImageHeader& header);

// Whether an array's values can be a picture: uint8, uint16, float32 or float16, of 1 to 16
// channels, (C, H, W), -1 where open. Where these look like the last axis, nobody can know.
bool can_be_picture(DType dtype, const Shape& shape);
// The dtypes among these.
bool is_picture_dtype(DType dtype);

// EXIF 2.3, tag 274: turns the stored picture so that it stands upright. REQUIRES: a recipe that
// has no step yet, which takes any turn.
void stand_upright(Recipe& picture, int orientation);

// Edits the recipe, and materializes where it does not fit. `filter`: of all resizes, in place of
// the geometry's own.
Result<void> follow_picture(const Following& way, FieldValue& value,
                            std::optional<Filter> filter = {});

}  // namespace headrace
