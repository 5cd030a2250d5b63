// SPDX-License-Identifier: Apache-2.0
// A recipe over encoded bytes as a device executes it: decoding and one resize (CodedWindow), then
// stages of work on pixels. A stage ends where the next instruction has to see all pixels.
#pragma once

#include <optional>
#include <vector>

#include "headrace/image/coded_window.h"
#include "headrace/image/pending_picture.h"

namespace headrace {

struct CodedStage {
  // The measurement at the begin of the stage: a table is made of it, which is applied
  // first.
  std::optional<PendingPass> measured = {};
  PixelSteps steps = {};                  // each of them for a device
  std::optional<PendingPass> moved = {};  // last: a pass over neighbors, or a warp
};

struct CodedProgram {
  static constexpr size_t kMostStages = 8;

  CodedWindow window;
  std::vector<CodedStage> stages;  // of images of the window's size and channels; may be none
};

// Nothing, with the reason, if the recipe does more than that.
std::optional<CodedProgram> coded_program_of(const Recipe& recipe, NotCoded& why_not);

}  // namespace headrace
