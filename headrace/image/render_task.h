// SPDX-License-Identifier: Apache-2.0
// A recipe to render, the memory for its pixels, and the result; and the memory that rendering
// needs, for the memory budget.
#pragma once

#include <cstddef>

#include "headrace/base/error.h"
#include "headrace/image/fused_pass.h"
#include "headrace/image/recipe.h"

namespace headrace {

// The memory for a picture: dense (C, H, W) or (H, W, C), with the recipe's size, channels and
// dtype.
struct RenderTarget {
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  bool batch = true;   // part of a batch, which is read when it is complete; false: a picture that
                       // is used immediately
  bool border = true;  // also stores the border; false: leaves the memory of the border unchanged
};

struct RenderTask {
  const Recipe* recipe = nullptr;
  RenderTarget target;
  Result<void> result;
  int warnings = 0;
};

// The pass that renders a recipe from its decoded window. REQUIRES: the recipe outlives the job.
PassJob pass_job(const Recipe& recipe, const RenderTarget& target);

// Computed from headers and operations. Bytes that rendering may need in addition to the target,
// including the renderer's buffers.
size_t working_bytes(const Recipe& recipe);
// Size of the pixels that a recipe starts from, whether decoded already or not.
size_t source_bytes(const Recipe& recipe);

}  // namespace headrace
