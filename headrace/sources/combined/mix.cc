// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "headrace/base/number_text.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/view.h"

// Note [Where a mix has which record]: a source that contributes c of the N records has its j-th
// one at time (2j + 1) / 2c, with times from 0 to 1, so they are evenly spread. The mix consists of
// the records of all sources, sorted by time; equal times are sorted by source. The number of a
// source's records before a time is a division, so the record at a position is found by bisection
// over time, without a table.
//
// When shuffled, each position keeps its source, so every segment keeps its proportions; the
// source's records are permuted among these positions, separately for each pass over them.

namespace headrace {
namespace {

const ErrorCode kBadMix{
    "HR0497", ErrorKind::kConfig, "invalid mix",
    "A mix takes a positive weight per source; the weights need not add up to one. A source "
    "without records cannot be mixed. size= is the number of records per epoch, at least one per "
    "source."};

constexpr uint64_t kMixKey = 0x6D6978;  // keeps these draws apart from the sampler's

// Integers that add up to `size`, in proportion to the shares (largest remainder method).
std::vector<int64_t> counts_of(const std::vector<double>& shares, int64_t size) {
  std::vector<int64_t> counts;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = size;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double wanted = shares[i] * static_cast<double>(size);
    counts.push_back(static_cast<int64_t>(wanted));
    remainders.emplace_back(static_cast<double>(counts[i]) - wanted, i);
    left -= counts[i];
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < left; ++i) ++counts[remainders[size_t(i) % shares.size()].second];
  return counts;
}

class Mix final : public View {
 public:
  Mix(SourcePtr all, const std::vector<SourcePtr>& sources, const std::vector<int64_t>& counts,
      uint64_t seed)
      : View(std::move(all)) {
    Fingerprint print;
    print.add("mix");
    print.add(base()->fingerprint());
    print.add(seed);
    int64_t begin = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      const int64_t records = sources[i]->size();
      parts_.push_back({.begin = begin,
                        .records = records,
                        .count = counts[i],
                        .order = Permutation(records, mix64(seed ^ kMixKey, i))});
      begin += records;
      size_ += counts[i];
      print.add(static_cast<uint64_t>(counts[i]));
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return size_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    std::string out = "mix (" + count_text(size_, "record") + ": ";
    for (size_t i = 0; i < parts_.size(); ++i) {
      out +=
          (i ? " + " : "") + with_commas(parts_[i].count) + " of " + with_commas(parts_[i].records);
    }
    return out + ")";
  }

  bool shuffles_itself() const override { return true; }
  int64_t shuffle_part(int64_t index) const override {
    return static_cast<int64_t>(place_of(index).part);
  }
  int64_t shuffled(uint64_t key, int64_t position) const override {
    const auto [part, j] = place_of(position);
    return position_of(part, parts_[part].shuffled(mix64(key, part), j));
  }

 private:
  struct Part {
    int64_t begin;    // of the source's records in all_
    int64_t records;  // in the source
    int64_t count;    // in the mix
    Permutation order;

    // The number of records of this part before the time of record j of `other_count` of another
    // part. `or_equal`: count equal times, too.
    int64_t before(int64_t j, int64_t other_count, bool or_equal) const {
      // (2i + 1) / 2count < (2j + 1) / 2other  <=>  2i + 1 < (2j + 1) count / other
      const __int128 bound = static_cast<__int128>(2 * j + 1) * count;
      const auto whole = static_cast<int64_t>(bound / other_count);
      const bool exact = bound % other_count == 0;
      // Counts odd numbers 2i + 1 below the bound, or up to it.
      const int64_t limit = exact && !or_equal ? whole - 1 : whole;
      return std::min(count, (limit + 1) / 2);
    }
    int64_t record(int64_t j) const {
      const int64_t within = j % records;
      const bool whole_pass = j - within + records <= count;
      return begin + (whole_pass ? within : order(within));
    }
    int64_t shuffled(uint64_t key, int64_t j) const {
      const int64_t pass = j / records, first = pass * records;
      const Permutation mixed(std::min(records, count - first), mix64(key, pass));
      return first + mixed(j - first);
    }
  };
  struct Place {
    size_t part;
    int64_t j;  // index among the part's records in the mix
  };

  // The position in the mix of record j of a part.
  int64_t position_of(size_t part, int64_t j) const {
    int64_t out = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      out += i == part ? j : parts_[i].before(j, parts_[part].count, i < part);
    }
    return out;
  }

  // See Note [Where a mix has which record].
  Place place_of(int64_t index) const {
    for (size_t part = 0; part < parts_.size(); ++part) {
      int64_t low = 0, high = parts_[part].count;  // position_of() grows with j
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (position_of(part, middle) < index) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low < parts_[part].count && position_of(part, low) == index) return {part, low};
    }
    return {0, 0};  // not reached: each position belongs to one part
  }
  int64_t viewed(int64_t index) const override {
    const auto [part, j] = place_of(index);
    return parts_[part].record(j);
  }

  std::vector<Part> parts_;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr mix(std::vector<SourcePtr> sources, const std::vector<double>& weights, int64_t size,
              uint64_t seed) {
  if (weights.size() != sources.size()) {
    raise(kBadMix,
          count_text(static_cast<int64_t>(sources.size()), "source") + " and " +
              count_text(static_cast<int64_t>(weights.size()), "weight"),
          "pass one weight for each source");
  }
  SourcePtr all = concat(sources);
  double sum = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
      raise(kBadMix, "a weight of " + shortest_text(weights[i]), "weights are positive numbers");
    }
    if (sources[i]->size() == 0) {
      raise(kBadMix, "source " + std::to_string(i) + " has no records", "remove it");
    }
    sum += weights[i];
  }
  std::vector<double> shares;
  double needed = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    shares.push_back(weights[i] / sum);
    needed = std::max(needed, static_cast<double>(sources[i]->size()) / shares[i]);
  }
  constexpr double kMax = 1e15;
  if (!std::isfinite(sum)) raise(kBadMix, "weights that add up to more than a float64 holds");
  if (size == 0 && needed > kMax) {
    raise(kBadMix, "an epoch with every record of every source would be more than 1e15 records",
          "use weights that differ less, or size=");
  }
  if (size < 0 || static_cast<double>(size) > kMax ||
      (size > 0 && size < static_cast<int64_t>(sources.size()))) {
    raise(kBadMix, "size=" + std::to_string(size),
          "use a number of records, at least one per source");
  }
  if (size == 0) {
    size = static_cast<int64_t>(std::ceil(needed - 1e-6));
    const auto lacks = [&] {
      const std::vector<int64_t> counts = counts_of(shares, size);
      for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] < sources[i]->size()) return true;
      }
      return false;
    };
    while (lacks()) ++size;  // rounding may leave one record out
  }
  std::vector<int64_t> counts = counts_of(shares, size);
  if (std::find(counts.begin(), counts.end(), 0) != counts.end()) {
    raise(kBadMix, "size=" + std::to_string(size) + " leaves a source without a record",
          "use a larger size, or a larger weight");
  }
  return std::make_shared<Mix>(std::move(all), sources, counts, seed);
}

}  // namespace headrace
