// SPDX-License-Identifier: Apache-2.0
// Batches of as many records as a budget holds: of sounds a number of seconds, of text of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sampling/sampler.h"

namespace headrace {

// Each record once, in batches whose records, each as long as the longest of them, take no more
// than `budget`. Records are sorted by length into buckets of like total length, about
// `most_buckets`, and fewer where a bucket would have few batches; an epoch permutes the records of
// each. How many records a batch has, and which bucket they come from, is drawn once: it is the
// same in every epoch, so an epoch always has as many batches, for all ranks, and any of them is
// found at once. `parts`: what lengths and budget
// count is one of so many, a power of ten, of the unit that texts speak of. REQUIRES:
// budget >= 1, most_buckets >= 1, parts >= 1. Throws HR0724 where there are no lengths, HR0725
// where one record alone is longer than the budget.
SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets,
                         int64_t parts = 1);

}  // namespace headrace
