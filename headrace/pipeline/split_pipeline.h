// SPDX-License-Identifier: Apache-2.0
// Splits a pipeline into two parts: the part that gives the same result for a record in every
// epoch, and the rest.
//
// Draws are keyed by an operator's branch and its ordinal among equal operators, so leaving out
// deterministic steps before an operator changes none of its draws.
#pragma once

#include <string>

#include "headrace/pipeline/plan.h"

namespace headrace {

struct SplitPipeline {
  Pipeline first;  // deterministic, and pictures are uint8 after it
  Pipeline rest;
  std::string ends_at;  // the step that begins the rest; empty: nothing remains
};

// `first` takes as many steps as possible from the front of each list. It ends at an operator that
// draws, a Fork, a RandomApply, a Python function, and where a dtype changes, because only bytes
// are worth caching.
SplitPipeline split_pipeline(const Pipeline& pipeline);

}  // namespace headrace
