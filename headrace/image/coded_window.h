// SPDX-License-Identifier: Apache-2.0
// A recipe over encoded bytes as a decode and one resize: a window of the stored picture, its
// rotation, its new size, the visible part of that, and its position on a border of one color.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/resize_batch.h"

namespace headrace {

// Why a recipe does something else.
enum class NotCoded : uint8_t {
  kPixels,         // it starts from pixels that were made before
  kForm,           // it needs what no kernel supports: 16 bits, alpha, a later page, strict checks
  kColors,         // it computes pixels, or maps their values
  kRectangles,     // it erases some
  kResizedBorder,  // it resizes a border with the picture
  kTooLarge,       // it resizes to more than kMostResizedSide a side
};

struct CodedWindow {
  EncodedPicture picture;
  Window decoded;  // of the stored picture: the part that the result depends on
  // The window that is resized, which contains `decoded`: its axes are swapped,
  // then it is mirrored.
  Window source;
  bool transpose = false, flip_x = false, flip_y = false;
  Filter filter = Filter::kBilinear;
  Size resized;  // to what; the turned window's size where it is not resized
  Window shown;  // of that; may be empty under a border
  // As it is shown: mirrored, and where on a canvas of this color, in the present picture.
  bool mirrored = false, upside_down = false;
  int at_top = 0, at_left = 0;
  std::array<uint8_t, 4> fill{};

  // The same for rows of `decoded` that lie as they are stored: `first` is the offset of the first
  // sample, `row` and `channel` the distances of neighbors.
  ResizeWindow resize(int64_t first, int64_t row, int64_t channel) const;
};

// Nothing, with the reason, if the recipe does more than that. before_steps: the part before its
// pixel steps.
std::optional<CodedWindow> coded_window_of(const Recipe& recipe, NotCoded& why_not,
                                           bool before_steps = false);

}  // namespace headrace
