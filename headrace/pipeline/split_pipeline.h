// SPDX-License-Identifier: Apache-2.0
// A pipeline in two: the part that gives the same for a record in every epoch, and the rest.
//
// Draws are keyed by an operator's branch and its ordinal among equal operators, so leaving
// deterministic steps out before it changes no draw of an operator.
#pragma once

#include <string>

#include "headrace/pipeline/plan.h"

namespace headrace {

struct SplitPipeline {
  Pipeline first;  // deterministic, and pictures are uint8 after it
  Pipeline rest;
  std::string ends_at;  // the step that begins the rest; empty: none is left
};

// `first` takes as many steps from the front of each list as it can. It ends at an operator that
// draws, a Fork, a RandomApply, a function of Python, and where a dtype changes: bytes
// are what is worth keeping.
SplitPipeline split_pipeline(const Pipeline& pipeline);

}  // namespace headrace
