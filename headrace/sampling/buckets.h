// SPDX-License-Identifier: Apache-2.0
// Batches of records that are alike in length, so that padding them costs little.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

extern const ErrorCode kNoLengths;

// Each record once, in a permuted order, of which every `pool` batches are sorted by length, cut
// into batches of `batch` positions, and these permuted; rows of each are ordered so that ranks'
// slices are alike (balanced_rows.h). So batches are still random, and what is left at the epoch's
// end is a random rest. REQUIRES: batch >= 1, pool >= 1. Throws HR0724 where there are no lengths.
SamplerPtr buckets(std::vector<int64_t> lengths, int64_t batch, int64_t pool);

}  // namespace headrace
