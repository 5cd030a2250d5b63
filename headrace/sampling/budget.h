// SPDX-License-Identifier: Apache-2.0
// Batches of as many records as a budget allows: seconds of audio, tokens of text.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sampling/sampler_record.h"

namespace headrace {

// Limit of a batch in one measure: the number of its records times the longest of them is at most
// `total`, in the measure's parts.
struct Budget {
  Measure measure;
  int64_t total = 1;
};

// Each record once, in batches that are within all of these budgets and have at most `max_records`
// records. Records are sorted by the first measure into about `max_buckets` buckets of similar
// total length, or fewer if a bucket would have few batches. If the next measure varies much within
// a bucket, the bucket is split by it. An epoch permutes the records of each bucket. The number of
// records and the bucket of each batch are drawn once and are the same in every epoch, so all
// epochs have the same number of batches, for all ranks, and any batch is found directly. Rows of a
// batch are ordered so that ranks' slices have similar cost (balanced_rows.h). REQUIRES: totals >=
// 1, max_buckets >= 1, max_records >= 1, all measures have the same number of records. Throws
// HR0724 if there are no lengths, HR0725 if a single record exceeds a budget.
SamplerPtr within_budgets(std::vector<Budget> budgets, int64_t max_buckets,
                          int64_t max_records = INT64_MAX);
// The same with one budget, whose lengths count units.
SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t max_buckets,
                         int64_t parts = 1);

}  // namespace headrace
