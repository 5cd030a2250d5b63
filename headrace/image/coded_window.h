// SPDX-License-Identifier: Apache-2.0
// A recipe over encoded bytes as a decoder, and one resize after it, come to the same: a window of
// the stored picture, how it is turned, its size then, and which part of that is shown.
#pragma once

#include <optional>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/resize_batch.h"

namespace headrace {

struct CodedWindow {
  EncodedPicture picture;
  Window decoded;  // of the stored picture: what the outcome looks at
  // What is resized, a window of the stored picture that holds `decoded`: its axes are swapped,
  // then it is mirrored.
  Window source;
  bool transpose = false, flip_x = false, flip_y = false;
  Filter filter = Filter::kBilinear;
  Size resized;  // to what; the turned window's size where it is not resized
  Window shown;  // of that

  // The same for rows of `decoded` that lie as they are stored: `first` is the offset of the first
  // sample, `row` and `channel` the distances of neighbours.
  ResizeWindow resize(int64_t first, int64_t row, int64_t channel) const;
};

// Nothing where the recipe does more than that: computes pixels, has a border, maps values, erases;
// where it starts from other than encoded bytes of 8 bits; where all of the file is to be looked at
// (strict=); and for filters that resize_batch.h does not know.
std::optional<CodedWindow> coded_window_of(const Recipe& recipe);

}  // namespace headrace
