// SPDX-License-Identifier: Apache-2.0
// Batches of records chosen by length, so that padding costs little: records of similar lengths, or
// as many records as a budget allows (seconds of audio, tokens of text).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/sampling/sampler.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {

// Throws HR0724 if there are no lengths, or one is negative: in 1/parts of the user's unit.
void check_lengths(std::span<const int64_t> lengths, int64_t parts);

// For each row the record placed there, of `rows` records that are sorted by cost. Uses bit
// reversal, as in van der Corput's sequence: neighboring rows are far apart in cost, so the slices
// of any division have similar costs. `turn`, which is random, decides which is first. REQUIRES: 0
// <= turn < rows.
inline std::vector<int64_t> balanced_rows(int64_t rows, int64_t turn) {
  std::vector<int64_t> out;
  out.reserve(size_t(rows));
  const int bits = std::bit_width(uint64_t(rows - 1));
  for (uint64_t i = 0; std::ssize(out) < rows; ++i) {
    uint64_t reversed = 0;
    for (int bit = 0; bit < bits; ++bit) reversed |= (i >> bit & 1) << (bits - 1 - bit);
    if (reversed < uint64_t(rows)) out.push_back((int64_t(reversed) + turn) % rows);
  }
  return out;
}

// Each record once, in a permuted order. Every `pool` batches are sorted by length and divided into
// batches of `batch` positions, whose order is then permuted; rows of each are ordered so that
// ranks' slices have similar cost (balanced_rows()). So batches are still random, and the remainder
// at the epoch's end is a random subset. Lengths are in 1/parts of the user's unit. REQUIRES: batch
// >= 1, pool >= 1. Throws as check_lengths().
SamplerPtr buckets(std::vector<int64_t> lengths, int64_t batch, int64_t pool, int64_t parts = 1);

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
// batch are ordered so that ranks' slices have similar cost (balanced_rows()). REQUIRES: totals >=
// 1, max_buckets >= 1, max_records >= 1, at least one budget, all measures have the same number of
// records. Throws as check_lengths(), and HR0725 if a single record exceeds a budget.
SamplerPtr within_budgets(std::vector<Budget> budgets, int64_t max_buckets,
                          int64_t max_records = INT64_MAX);
// The same with one budget, whose lengths count units.
SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t max_buckets,
                         int64_t parts = 1);

}  // namespace headrace
