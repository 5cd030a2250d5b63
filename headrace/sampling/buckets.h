// SPDX-License-Identifier: Apache-2.0
// Batches of records of similar length, so that padding costs little.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

extern const ErrorCode kNoLengths;

// Each record once, in a permuted order. Every `pool` batches are sorted by length and divided into
// batches of `batch` positions, whose order is then permuted; rows of each are ordered so that
// ranks' slices have similar cost (balanced_rows.h). So batches are still random, and the remainder
// at the epoch's end is a random subset. REQUIRES: batch >= 1, pool >= 1. Throws HR0724 if there
// are no lengths.
SamplerPtr buckets(std::vector<int64_t> lengths, int64_t batch, int64_t pool);

}  // namespace headrace
