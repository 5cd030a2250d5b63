// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "headrace/sampling/sampler.h"
#include "headrace/sources/source.h"

namespace headrace {

// Each record once, in an order that the source computes from an epoch's key; shuffled() for a
// source that does not define its order (Source::shuffles_itself).
SamplerPtr shuffled_by(const SourcePtr& source);

}  // namespace headrace
