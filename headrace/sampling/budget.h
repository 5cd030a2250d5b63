// SPDX-License-Identifier: Apache-2.0
// Batches of as many records as a budget holds: seconds of audio, tokens of text.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sampling/sampler_record.h"

namespace headrace {

// Limit of a batch in a measure: its records, each as long as the longest of them, no more
// than `total`, in the parts that the measure counts.
struct Budget {
  Measure measure;
  int64_t total = 1;
};

// Each record once, in batches that are within all of these budgets, and of no more than
// `most_records`. Records are sorted by the first measure into buckets of like total length, about
// `most_buckets`, and fewer where a bucket would have few batches; those of a bucket by the next
// measure into smaller ones where it differs much; an epoch permutes the records of each. How many
// records a batch has, and which bucket they come from, is drawn once: it is the same in every
// epoch, so an epoch always has as many batches, for all ranks, and any of them is found at once.
// Rows of a batch are ordered so that ranks' slices are alike (balanced_rows.h). REQUIRES: totals
// >= 1, most_buckets >= 1, most_records >= 1, measures of as many records. Throws HR0724 where
// there are no lengths, HR0725 where one record alone is longer than a budget.
SamplerPtr within_budgets(std::vector<Budget> budgets, int64_t most_buckets,
                          int64_t most_records = INT64_MAX);
// The same of one budget, whose lengths count units.
SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets,
                         int64_t parts = 1);

}  // namespace headrace
