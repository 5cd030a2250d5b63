// SPDX-License-Identifier: Apache-2.0
// What the kinds whose values are pictures share: a value is a recipe.
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

// Channels of the kind's encoded pictures.
int channels_of(const KindRecord& kind);

// Edits the recipe, and materializes where it does not fit. `filter`: of all resizes, in place of
// the geometry's own.
Result<void> follow_picture(const Following& way, FieldValue& value,
                            std::optional<Filter> filter = {});

}  // namespace headrace
