// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "headrace/base/number_text.h"
#include "headrace/base/random.h"
#include "headrace/sources/subset.h"

namespace headrace {
namespace {

const ErrorCode kBadSplit{
    "HR0431", ErrorKind::kConfig, "impossible split",
    "A split takes the fraction of records for each part: positive numbers that add up to one, "
    "or to less, which drops the remaining records. A field whose proportions are preserved must "
    "be a column of integers, such as label."};

constexpr uint64_t kSplitKey = 0x73706C6974;  // keeps these draws apart from the sampler's

// The number of records of each part, then of the dropped records (largest remainder method).
std::vector<int64_t> sizes_of(const std::vector<double>& fractions, int64_t records) {
  std::vector<double> wanted;
  for (double fraction : fractions) wanted.push_back(fraction * static_cast<double>(records));
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  wanted.push_back(std::max(0.0, 1.0 - sum) * static_cast<double>(records));
  std::vector<int64_t> sizes;
  // Adds a small amount, so that 0.1 * 30 gives 3 despite rounding errors.
  for (double count : wanted) sizes.push_back(static_cast<int64_t>(std::floor(count + 1e-9)));
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return wanted[a] - static_cast<double>(sizes[a]) > wanted[b] - static_cast<double>(sizes[b]);
  });
  int64_t left = records - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++sizes[order[i]];
  return sizes;
}

// All records, shuffled; with values, records with equal values are adjacent.
std::vector<int64_t> assignment_order(int64_t records, uint64_t seed,
                                      const std::vector<int64_t>& values) {
  std::vector<int64_t> order(records);
  std::iota(order.begin(), order.end(), 0);
  Draws draws(seed, 0, 0, kSplitKey);
  for (int64_t i = records - 1; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
  if (!values.empty()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return values[a] < values[b]; });
  }
  return order;
}

}  // namespace

std::vector<std::vector<int64_t>> split_indices(const Source& source,
                                                const std::vector<double>& fractions, uint64_t seed,
                                                std::string_view stratify_by) {
  if (fractions.empty()) raise(kBadSplit, "no fraction was given", "for example [0.9, 0.1]");
  for (double fraction : fractions) {
    if (!(fraction > 0 && fraction <= 1)) {
      raise(kBadSplit, "a fraction of " + shortest_text(fraction),
            "each part's fraction must be between 0 and 1");
    }
  }
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  if (sum > 1 + 1e-9) {
    raise(kBadSplit, "the fractions add up to " + shortest_text(sum), "at most 1 is possible");
  }
  std::vector<int64_t> values;
  if (!stratify_by.empty()) {
    values = source.integer_column(stratify_by);
    if (values.empty() && source.size() > 0) {
      raise(kBadSplit,
            "'" + std::string(stratify_by) + "' is not a column of integers of this source",
            "use a field such as label, or omit stratify_by");
    }
  }
  const std::vector<int64_t> sizes = sizes_of(fractions, source.size());
  std::vector<std::vector<int64_t>> parts(sizes.size());
  // Assigns records one by one, each to the part that is furthest behind its share. So every
  // segment of the sorted values is divided in proportion, and the sizes are exact.
  int64_t dealt = 0;
  for (int64_t record : assignment_order(source.size(), seed, values)) {
    ++dealt;
    const auto behind = [&](size_t part) {
      return static_cast<double>(sizes[part]) * static_cast<double>(dealt) /
                 static_cast<double>(source.size()) -
             static_cast<double>(parts[part].size());
    };
    size_t best = 0;
    double most = -std::numeric_limits<double>::infinity();
    for (size_t part = 0; part < parts.size(); ++part) {
      const bool full = static_cast<int64_t>(parts[part].size()) == sizes[part];
      if (!full && behind(part) > most) {
        best = part;
        most = behind(part);
      }
    }
    parts[best].push_back(record);
  }
  parts.pop_back();  // the left-out records
  for (std::vector<int64_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

std::vector<SourcePtr> split(const SourcePtr& source, const std::vector<double>& fractions,
                             uint64_t seed, std::string_view stratify_by) {
  std::vector<SourcePtr> out;
  for (std::vector<int64_t>& part : split_indices(*source, fractions, seed, stratify_by)) {
    out.push_back(subset(source, std::move(part)));
  }
  return out;
}

std::vector<Fold> kfold(const SourcePtr& source, int folds, uint64_t seed,
                        std::string_view stratify_by) {
  if (folds < 2 || folds > source->size()) {
    raise(kBadSplit,
          std::to_string(folds) + " folds of " + std::to_string(source->size()) + " records",
          "at least two folds, with at least one record each");
  }
  const std::vector<std::vector<int64_t>> parts =
      split_indices(*source, std::vector<double>(folds, 1.0 / folds), seed, stratify_by);
  std::vector<Fold> out;
  for (const std::vector<int64_t>& part : parts) {
    std::vector<int64_t> others;
    size_t next = 0;
    for (int64_t record = 0; record < source->size(); ++record) {
      if (next < part.size() && part[next] == record) {
        ++next;
      } else {
        others.push_back(record);
      }
    }
    out.push_back({.train = subset(source, std::move(others)), .validation = subset(source, part)});
  }
  return out;
}

}  // namespace headrace
