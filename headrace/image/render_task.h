// SPDX-License-Identifier: Apache-2.0
// A recipe to be rendered, where its pixels go, and what became of it.
#pragma once

#include "headrace/base/error.h"
#include "headrace/image/fused_pass.h"
#include "headrace/image/recipe.h"

namespace headrace {

// Where a picture goes: dense (C, H, W) or (H, W, C) of the recipe's size, channels and dtype.
struct RenderTarget {
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  bool batch = true;   // one of many, read when all are there; not a picture that is used at once
  bool border = true;  // stores the border, too; else what is there stays
};

struct RenderTask {
  const Recipe* recipe = nullptr;
  RenderTarget target;
  Result<void> result;
  int warnings = 0;
};

// The pass that renders it, once its window is decoded. REQUIRES: the recipe outlives it.
PassJob pass_job(const Recipe& recipe, const RenderTarget& target);

}  // namespace headrace
