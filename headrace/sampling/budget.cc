// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batches_by_length.h"
#include "headrace/sampling/recent.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const ErrorCode kOverBudget{
    "HR0725", ErrorKind::kConfig, "record exceeds the batch budget",
    "A budget limits the total of a batch's records, each padded to the longest. A record that "
    "exceeds the budget on its own fits into no batch, and is not dropped silently. Use a larger "
    "budget, a transform or filter that shortens such records, or a subset of the source without "
    "them."};

// Average number of batches per bucket, if there are enough, so that the other records of its batch
// vary.
constexpr int64_t kBatchesABucket = 8;
constexpr double kMaxSpread = 1.5;  // maximum ratio of lengths in one bucket

const uint64_t kBudgetPlaces = hash_name("budget places"), kBudgetKey = hash_name("budget records");

// A length in the user's unit.
std::string text_of_length(int64_t length, int64_t parts) {
  std::string text = std::to_string(length / parts);
  if (parts == 1 || length % parts == 0) return text;
  // digits after the point; `parts` is a power of ten
  std::string rest = std::to_string(parts + length % parts).substr(1);
  return text + "." + rest.substr(0, rest.find_last_not_of('0') + 1);
}

// Counts a length of zero as one.
void check(Budget& budget) {
  std::vector<int64_t>& lengths = budget.measure.lengths;
  check_lengths(lengths, budget.measure.parts);
  for (int64_t& length : lengths) length = std::max<int64_t>(length, 1);
  const auto longest = std::ranges::max_element(lengths);
  if (*longest <= budget.total) return;
  raise(kOverBudget,
        "record " + std::to_string(longest - lengths.begin()) + " has a length of " +
            text_of_length(*longest, budget.measure.parts) + ", but the budget is " +
            text_of_length(budget.total, budget.measure.parts),
        "use a larger budget, or a source without such long records");
}

class WithinBudgets final : public Sampler {
 public:
  WithinBudgets(std::vector<Budget> budgets, int64_t max_buckets, int64_t max_records)
      : records_(budgets[0].measure.lengths.size()), max_records_(max_records) {
    fingerprint_ = mix64(hash_name("budget"), uint64_t(budgets[0].total));
    fingerprint_ = mix64(fingerprint_, uint64_t(max_buckets));
    for (Budget& budget : budgets) {
      for (const int64_t length : budget.measure.lengths) {
        fingerprint_ = mix64(fingerprint_, uint64_t(length));
      }
      check(budget);
      description_ += (description_.empty() ? "" : " and ") +
                      text_of_length(budget.total, budget.measure.parts);
    }
    for (size_t i = 1; i < budgets.size(); ++i) {
      fingerprint_ = mix64(fingerprint_, uint64_t(budgets[i].total));
    }
    if (max_records < INT64_MAX) fingerprint_ = mix64(fingerprint_, uint64_t(max_records));
    std::iota(records_.begin(), records_.end(), 0);
    add_buckets({.budgets = budgets, .spread = kMaxSpread, .most = max_buckets}, 0,
                std::ssize(records_));
    place();
  }

  int64_t size() const override { return std::ssize(batches_) * largest_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const auto batch = rows_of({seed, epoch, position / largest_});
    return (*batch)[size_t(position % largest_ % std::ssize(*batch))];
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    for (size_t i = 0; i < out.size();) {
      const auto batch = rows_of({seed, epoch, begin / largest_});
      const int64_t first = begin % largest_;
      const auto run = std::min<int64_t>(std::ssize(out) - int64_t(i), largest_ - first);
      for (int64_t row = first; row < first + run; ++row) {
        out[i++] = (*batch)[size_t(row % std::ssize(*batch))];
      }
      begin += run;
    }
  }
  std::span<const int64_t> batch_sizes() const override { return sizes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled into " + std::to_string(std::ssize(batches_)) +
           " batches of similar length, of " + description_ + " together at most";
  }

 private:
  struct Bucket {
    int64_t first, count;  // range of records_
  };
  struct Batch {
    int64_t bucket = 0, first = 0, count = 0;  // range of the bucket's slots
  };
  struct Key {
    uint64_t seed = 0, epoch = 0;
    int64_t batch = 0;
    bool operator==(const Key&) const = default;
  };
  using Rows = std::vector<int64_t>;
  // How a range of records is sorted and split into buckets.
  struct BucketSplit {
    const std::vector<Budget>& budgets;
    size_t measure = 0;
    double spread;  // maximum ratio of lengths in one bucket
    int64_t most;   // maximum number of buckets

    int64_t length(int64_t record) const {
      return budgets[measure].measure.lengths[size_t(record)];
    }
    double total() const { return double(budgets[measure].total); }
  };

  Recent<Key, Rows>::Made rows_of(const Key& key) const {
    return recent_.of(key, [&] {
      const Batch& batch = batches_[size_t(key.batch)];
      const Bucket& bucket = buckets_[size_t(batch.bucket)];
      const uint64_t epoch = mix64(mix64(key.seed, key.epoch), kBudgetKey);
      const Permutation order(bucket.count, mix64(epoch, uint64_t(batch.bucket)));
      Rows sorted;  // positions in the bucket, whose records are sorted
      for (int64_t slot = batch.first; slot < batch.first + batch.count; ++slot) {
        sorted.push_back(order(slot));
      }
      std::ranges::sort(sorted);
      Draws draws(key.seed, key.epoch, uint64_t(key.batch), kBudgetKey);
      Rows rows = balanced_rows(batch.count, draws.below(batch.count));
      for (int64_t& row : rows) row = records_[size_t(bucket.first + sorted[size_t(row)])];
      return rows;
    });
  }

  // Sorts the records [first, end) by a measure, splits them where the measure grows too much or a
  // bucket has its part of the total, and splits each of these by the next measure.
  void add_buckets(const BucketSplit& cutting, int64_t first, int64_t end) {
    std::stable_sort(records_.begin() + first, records_.begin() + end,
                     [&](int64_t a, int64_t b) { return cutting.length(a) < cutting.length(b); });
    const auto length = [&](int64_t i) { return cutting.length(records_[size_t(i)]); };
    double all = 0;
    for (int64_t i = first; i < end; ++i) all += double(length(i));
    const double batches = all / cutting.total();
    const int64_t wanted =
        std::clamp(int64_t(batches / double(kBatchesABucket)), int64_t{1}, cutting.most);
    double before = 0;
    int64_t made = 0;
    for (int64_t begin = first, at = first; begin < end; begin = at) {
      const double until = all * double(++made) / double(wanted);
      // Where lengths grow fast, as they do at the end, a bucket ends earlier.
      const auto spread = [&] {
        const bool has_batches = double(at - begin) * double(length(at)) > 2 * cutting.total();
        return cutting.most > 1 && has_batches &&
               double(length(at)) > cutting.spread * double(length(begin));
      };
      while (at < end && (at == begin || (before < until && !spread()))) {
        before += double(length(at++));
      }
      if (cutting.measure + 1 < cutting.budgets.size()) {
        BucketSplit next = cutting;
        ++next.measure;
        add_buckets(next, begin, at);
      } else {
        add_bucket(cutting.budgets, begin, at - begin);
      }
    }
  }

  // Its batches differ by at most one record, so none is a small remainder.
  void add_bucket(const std::vector<Budget>& budgets, int64_t first, int64_t count) {
    int64_t most = max_records_;
    for (const Budget& budget : budgets) {
      int64_t longest = 1;
      for (int64_t i = first; i < first + count; ++i) {
        longest = std::max(longest, budget.measure.lengths[size_t(records_[size_t(i)])]);
      }
      most = std::min(most, budget.total / longest);
    }
    const int64_t batches = (count + most - 1) / most;
    for (int64_t i = 0; i < batches; ++i) {
      const int64_t begin = count * i / batches, end = count * (i + 1) / batches;
      batches_.push_back({std::ssize(buckets_), begin, end - begin});
    }
    buckets_.push_back({first, count});
  }

  void place() {
    const auto count = std::ssize(batches_);
    const Permutation places(count, kBudgetPlaces);
    std::vector<Batch> placed(batches_.size());
    for (int64_t k = 0; k < count; ++k) {
      placed[size_t(k)] = batches_[size_t(places(k))];
      sizes_.push_back(placed[size_t(k)].count);
    }
    batches_ = std::move(placed);
    largest_ = *std::ranges::max_element(sizes_);
  }

  std::vector<int64_t> records_;  // by bucket, each sorted by its last measure
  const int64_t max_records_;
  std::vector<Bucket> buckets_;
  std::vector<Batch> batches_;  // in the order of an epoch
  std::vector<int64_t> sizes_;
  int64_t largest_ = 0;
  uint64_t fingerprint_ = 0;
  std::string description_;
  mutable Recent<Key, Rows> recent_{8};  // threads work on a few neighboring batches
};

}  // namespace

SamplerPtr within_budgets(std::vector<Budget> budgets, int64_t max_buckets, int64_t max_records) {
  return std::make_shared<WithinBudgets>(std::move(budgets), max_buckets, max_records);
}

SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t max_buckets,
                         int64_t parts) {
  std::vector<Budget> budgets(1);
  budgets[0] = {.measure = {.lengths = std::move(lengths), .parts = parts}, .total = budget};
  return within_budgets(std::move(budgets), max_buckets);
}

namespace {

const ErrorCode kNoBudget{
    "HR0728", ErrorKind::kConfig, "budget too small",
    "The budget of a batch must be a number above 0, in the unit of the lengths: seconds for an "
    "audio field, tokens for token counts."};

void check_totals(const Arguments& arguments) {
  for (const double total : arguments.numbers("total")) {
    if (total > 0) continue;
    raise(kNoBudget,
          "[budget] total must be a positive number (got " + text_of(ParamValue(total)) + ")");
  }
}

// A budget in parts of its unit, capped at INT64_MAX.
int64_t parts_of(double total, int64_t parts) {
  total *= double(parts);
  if (total >= 0x1p63) return INT64_MAX;
  return std::max(int64_t{1}, int64_t(total));
}

std::vector<Budget> budgets_of(SamplerData data, const Arguments& arguments) {
  const std::vector<double>& totals = arguments.numbers("total");
  std::vector<Budget> out;
  out.push_back({.measure = {.lengths = std::move(data.integers), .parts = data.parts}});
  for (Measure& measure : data.further) out.push_back({.measure = std::move(measure)});
  if (totals.size() != out.size()) {
    raise(kNoBudget,
          "[budget] total has " + std::to_string(totals.size()) + " numbers for " +
              std::to_string(out.size()) + " lengths of each record",
          "pass one total for each: budget((\"tokens\", \"images\"), total=(8192, 16))");
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].total = parts_of(totals[i], out[i].measure.parts);
  }
  return out;
}

const SamplerRecord kBudget{
    .name = "budget",
    .doc =
        "Each record once, shuffled, in batches of similar length with as many records as "
        "``total`` allows.\n\n"
        "The size of a batch is its number of records times the length of its longest record. "
        "Records are sorted into up to ``num_buckets`` buckets of similar total length, and each "
        "epoch shuffles within the buckets. The number of records in batch k is the same in every "
        "epoch, so all epochs and ranks have the same number of batches, and the ranks' slices of "
        "a batch cost about the same. Do not pass batch_size to the loader.\n\n"
        "A tuple of several lengths, with as many totals, bounds each of them: "
        "``budget((\"tokens\", \"images\"), total=(8192, 16))``.\n\n"
        "Raises ConfigError HR0725 if a single record is longer than ``total``.",
    .example = "hr.sampling.budget([3, 1, 2], total=4)",
    .per_record = PerRecord::kDurations,
    .given =
        {.name = "lengths",
         .type = ParamType::kFloats,
         .doc = "One length per record, which need not be an integer (seconds); or the name of a "
                "scalar field, or of an audio field, whose headers are then read once; or a tuple "
                "of these.",
         .required = true},
    .params = {{.name = "total",
                .type = ParamType::kFloats,
                .doc = "Budget over all ranks, in the unit of the lengths (audio fields: "
                       "seconds). With several lengths, one number for each.",
                .required = true,
                .min_count = 1},
               {.name = "num_buckets",
                .type = ParamType::kInt,
                .doc = "Maximum number of buckets.",
                .fallback = int64_t{30},
                .minimum = 1},
               {.name = "max_records",
                .type = ParamType::kInt,
                .doc = "Maximum number of records per batch, over all ranks. None: as many as the "
                       "total allows.",
                .minimum = 1}},
    .check = check_totals,
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      const int64_t most =
          arguments.is_none("max_records") ? INT64_MAX : arguments.integer("max_records");
      return within_budgets(budgets_of(std::move(data), arguments),
                            arguments.integer("num_buckets"), most);
    }};
const Register<SamplerRecord> registered_budget(kBudget);

}  // namespace

}  // namespace headrace
