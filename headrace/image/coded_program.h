// SPDX-License-Identifier: Apache-2.0
// A recipe for encoded bytes as a program for a device: decoding and one resize (CodedWindow), then
// stages of computations on pixels. A stage ends where the next instruction depends on all pixels.
#pragma once

#include <optional>
#include <vector>

#include "headrace/image/coded_window.h"
#include "headrace/image/pending_picture.h"

namespace headrace {

struct CodedStage {
  // The measurement with which the stage begins. A table is computed from it and applied first.
  std::optional<PendingPass> measured = {};
  PixelSteps steps = {};                  // all of which have device code
  std::optional<PendingPass> moved = {};  // last: a pass over neighbors, or a warp
};

struct CodedProgram {
  static constexpr size_t kMostStages = 8;

  CodedWindow window;
  std::vector<CodedStage> stages;  // for images of the window's size and channels; may be empty
};

// Empty if the recipe does more than that; `why_not` is then the reason.
std::optional<CodedProgram> coded_program_of(const Recipe& recipe, NotCoded& why_not);

}  // namespace headrace
