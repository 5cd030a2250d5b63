// SPDX-License-Identifier: Apache-2.0
// A recipe for encoded bytes, as a decode and one resize: a window of the stored picture, its
// orientation, its new size, the visible part of the result, and the position of that part on a
// canvas of one color. CodedProgram, for a device, is such a window followed by stages of
// computations on pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/image/pending_picture.h"
#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/resize_batch.h"

namespace headrace {

// Why a recipe cannot be expressed in this form.
enum class NotCoded : uint8_t {
  kPixels,         // it starts from pixels, not from encoded bytes
  kForm,           // it needs what no kernel supports: 16 bits, alpha, a later page, strict checks
  kColors,         // it computes pixels, or maps their values
  kRectangles,     // it erases rectangles
  kResizedBorder,  // it resizes a border with the picture
  kTooLarge,       // a side, of the resized picture or the canvas, exceeds kMaxResizedSide
};

struct CodedWindow {
  EncodedImage picture;
  Window decoded;  // the part of the stored picture that the result depends on
  // The window that is resized, which contains `decoded`. It is transposed first, then flipped.
  Window source;
  bool transpose = false, flip_x = false, flip_y = false;
  Filter filter = Filter::kBilinear;
  Size resized;  // the new size; the size of the oriented window if it is not resized
  Window shown;  // the visible part of the resized picture; may be empty if there is a border
  // How `shown` appears in the result: mirrored, and at which position on a canvas of this color.
  bool mirrored = false, upside_down = false;
  int at_top = 0, at_left = 0;
  std::array<uint8_t, 4> fill{};

  // The window as input of the resize kernels, for the rows of `decoded` in stored orientation:
  // `first` is the offset of the first sample, `row` and `channel` are strides.
  ResizeWindow resize(int64_t first, int64_t row, int64_t channel) const;
};

// Empty if the recipe does more than that; `why_not` is then the reason. before_steps: converts
// only the part of the recipe before its pixel steps.
std::optional<CodedWindow> coded_window_of(const Recipe& recipe, NotCoded& why_not,
                                           bool before_steps = false);

// A stage ends where the next instruction depends on all pixels.
struct CodedStage {
  // The measurement with which the stage begins. A table is computed from it and applied first.
  std::optional<PendingPass> measured = {};
  PixelSteps steps = {};                  // all of which have device code
  std::optional<PendingPass> moved = {};  // last: a pass over neighbors, or a warp
};

struct CodedProgram {
  static constexpr size_t kMaxStages = 8;

  CodedWindow window;
  std::vector<CodedStage> stages;  // for images of the window's size and channels; may be empty
};

// Empty if the recipe does more than that; `why_not` is then the reason.
std::optional<CodedProgram> coded_program_of(const Recipe& recipe, NotCoded& why_not);

}  // namespace headrace
