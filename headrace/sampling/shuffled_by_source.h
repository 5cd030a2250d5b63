// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "headrace/sampling/sampler.h"
#include "headrace/sources/source.h"

namespace headrace {

// Each record once, in the order that the source itself makes from an epoch's key; shuffled() for a
// source without its own order (Source::shuffles_itself).
SamplerPtr shuffled_by(const SourcePtr& source);

}  // namespace headrace
