// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "headrace/sampling/sampler.h"
#include "headrace/sources/source.h"

namespace headrace {

// Each record once, in the order that the source itself makes of an epoch's key; of a source that
// has nothing to say about it (Source::shuffles_itself), shuffled().
SamplerPtr shuffled_by(const SourcePtr& source);

}  // namespace headrace
