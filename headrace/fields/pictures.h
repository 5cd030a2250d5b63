// SPDX-License-Identifier: Apache-2.0
// Functions shared by images and masks, whose values are recipes.
#pragma once

#include <optional>

#include "headrace/fields/begin.h"
#include "headrace/fields/geometry.h"
#include "headrace/fields/kind.h"

namespace headrace {

// KindRecord::take for images and masks.
bool take_picture(Field& field, FieldKind kind);

// KindRecord::begin for images and masks: opens the encoded image, or uses the pixels. HR0121 if it
// does not have the channels of `state`.
Result<void> begin_picture(const BeginContext& from, FieldValue& value);

// The format to which an encoded image is decoded.
struct PictureForm {
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;
  int channels = 3;
};
// The format for images of this kind in this mode. REQUIRES: not kStored, where each file
// determines its format.
PictureForm picture_form(PictureMode mode, FieldKind kind);
// The format for the image with this header. HR0121 for an invalid mask; HR0135 if kStored does not
// support it.
Result<PictureForm> picture_form(PictureMode mode, FieldKind kind, const ImageHeader& header);

// Whether an array can be an image: uint8, uint16, float32 or float16, with shape (C, H, W), 1 to
// 16 channels, and -1 for open sizes. False if the last axis looks like the channels.
bool can_be_picture(DType dtype, const Shape& shape);
// Whether it is one of these dtypes.
bool is_picture_dtype(DType dtype);

// Applies an Exif orientation (EXIF 2.3, tag 274), so that the image is upright. REQUIRES: the
// recipe has no edits yet, so that it accepts all flips and transposes.
void apply_exif_orientation(Recipe& picture, int orientation);

// Applies the moves to the recipe; renders the image where a recipe cannot express a move.
// `filter`: for all resizes, instead of the geometry's filter.
Result<void> follow_picture(const FollowContext& way, FieldValue& value,
                            std::optional<Filter> filter = {});

}  // namespace headrace
