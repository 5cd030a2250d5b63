// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/budget.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/buckets.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const ErrorCode kOverBudget{
    "HR0725", ErrorKind::kConfig, "record exceeds the batch budget",
    "A budget limits the total of a batch's records, each padded to the longest. A record that "
    "exceeds it alone fits into no batch, and is not dropped silently. Use a larger budget, a "
    "transform or filter that shortens such records, or a subset of the source without them."};

// So many batches a bucket has on average, where there are as many: its records meet in ever other
// company.
constexpr int64_t kBatchesABucket = 8;
constexpr double kMostSpread = 1.5;  // of lengths in one bucket

const uint64_t kBudgetPlaces = hash_name("budget places"), kBudgetKey = hash_name("budget records");

class WithinBudget final : public Sampler {
 public:
  WithinBudget(std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets, int64_t parts)
      : budget_(budget), parts_(parts), records_(lengths.size()) {
    fingerprint_ = mix64(mix64(hash_name("budget"), uint64_t(budget)), uint64_t(most_buckets));
    for (const int64_t length : lengths) fingerprint_ = mix64(fingerprint_, uint64_t(length));
    for (int64_t& length : lengths) length = std::max<int64_t>(length, 1);
    std::iota(records_.begin(), records_.end(), 0);
    std::ranges::stable_sort(records_, {}, [&](int64_t record) { return lengths[size_t(record)]; });
    const int64_t longest = records_.back();
    if (lengths[size_t(longest)] > budget) {
      raise(kOverBudget,
            "record " + std::to_string(longest) + " has a length of " +
                text_of_length(lengths[size_t(longest)]) + ", the budget is " +
                text_of_length(budget),
            "a larger budget, or a source without records as long");
    }
    make_buckets(lengths, most_buckets);
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

  int64_t size() const override { return std::ssize(batches_) * largest_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const Batch& batch = batches_[size_t(position / largest_)];
    const Bucket& bucket = buckets_[size_t(batch.bucket)];
    const Permutation records(bucket.count,
                              mix64(mix64(mix64(seed, epoch), kBudgetKey), uint64_t(batch.bucket)));
    const int64_t slot = batch.first + position % largest_ % batch.count;
    return records_[size_t(bucket.first + records(slot))];
  }
  std::span<const int64_t> batch_sizes() const override { return sizes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled into " + std::to_string(std::ssize(batches_)) +
           " batches of like length, of " + text_of_length(budget_) + " together at most";
  }

 private:
  // In the unit that the user speaks of.
  std::string text_of_length(int64_t length) const {
    std::string text = std::to_string(length / parts_);
    if (parts_ == 1 || length % parts_ == 0) return text;
    std::string rest = std::to_string(parts_ + length % parts_).substr(1);  // of a power of ten
    return text + "." + rest.substr(0, rest.find_last_not_of('0') + 1);
  }

  struct Bucket {
    int64_t first, count;  // of records_
  };
  struct Batch {
    int64_t bucket = 0, first = 0, count = 0;  // of the bucket's slots
  };

  void make_buckets(const std::vector<int64_t>& lengths, int64_t most) {
    const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    const double batches = all / double(budget_);
    const int64_t wanted = std::clamp(int64_t(batches / double(kBatchesABucket)), int64_t{1}, most);
    const auto length = [&](int64_t i) { return lengths[size_t(records_[size_t(i)])]; };
    const auto count = std::ssize(records_);
    double before = 0;
    for (int64_t first = 0, end = 0; first < count; first = end) {
      const double until = all * double(std::ssize(buckets_) + 1) / double(wanted);
      // Where lengths grow fast, as they do at the end, a bucket ends earlier.
      const auto spread = [&] {
        const bool has_batches = double(end - first) * double(length(end)) > 2 * double(budget_);
        return most > 1 && has_batches && double(length(end)) > kMostSpread * double(length(first));
      };
      while (end < count && (end == first || (before < until && !spread()))) {
        before += double(length(end++));
      }
      add_bucket(first, end - first, length(end - 1));
    }
  }

  // Its batches differ by one record at most, so none is a small rest.
  void add_bucket(int64_t first, int64_t count, int64_t longest) {
    const int64_t most = budget_ / longest, batches = (count + most - 1) / most;
    for (int64_t i = 0; i < batches; ++i) {
      const int64_t begin = count * i / batches, end = count * (i + 1) / batches;
      batches_.push_back({std::ssize(buckets_), begin, end - begin});
    }
    buckets_.push_back({first, count});
  }

  const int64_t budget_, parts_;
  std::vector<int64_t> records_;  // by length
  std::vector<Bucket> buckets_;
  std::vector<Batch> batches_;  // as they come in an epoch
  std::vector<int64_t> sizes_;
  int64_t largest_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace

SamplerPtr within_budget(std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets,
                         int64_t parts) {
  if (lengths.empty()) raise(kNoLengths, "there are no lengths to sort by");
  return std::make_shared<WithinBudget>(std::move(lengths), budget, most_buckets, parts);
}

namespace {

const ErrorCode kNoBudget{
    "HR0728", ErrorKind::kConfig, "budget too small",
    "The budget of a batch is a number above 0, in the unit of the lengths: seconds for an audio "
    "field, tokens for token counts."};

void check_total(const Arguments& arguments) {
  if (arguments.number("total") > 0) return;
  raise(kNoBudget, "[budget] total must be a positive number (got " +
                       text_of(ParamValue(arguments.number("total"))) + ")");
}

// The budget in parts of its unit; what is more than all records is all of them.
int64_t budget_of(const SamplerData& data, const Arguments& arguments) {
  const double total = arguments.number("total") * double(data.parts);
  if (total >= 0x1p63) return INT64_MAX;
  return std::max(int64_t{1}, int64_t(total));
}

const SamplerRecord kBudget{
    .name = "budget",
    .doc =
        "Each record once, shuffled, in batches of as many as ``total`` holds, alike in length."
        "\n\n"
        "What counts is what a batch takes: its records, each as long as its longest. Records are "
        "sorted into some ``num_buckets`` of like total length, and an epoch shuffles each; how "
        "many records batch k has is the same in every epoch, so every epoch has as many batches, "
        "on all ranks. The loader is given no batch_size.\n\n"
        "ConfigError HR0725 where one record alone is longer than ``total``.",
    .example = "hr.sampling.budget([3, 1, 2], total=4)",
    .per_record = PerRecord::kDurations,
    .given = {.name = "lengths",
              .type = ParamType::kFloats,
              .doc = "One number a record, which need not be whole (seconds), or the name of a "
                     "field of one number, or of an audio field, whose headers are read once "
                     "then.",
              .required = true},
    .params =
        {{.name = "total",
          .type = ParamType::kFloat,
          .doc = "Budget of all ranks together, in the unit of the lengths; of an audio field in "
                 "seconds.",
          .required = true},
         {.name = "num_buckets",
          .type = ParamType::kInt,
          .doc = "Buckets that records are sorted into, at most.",
          .fallback = int64_t{30},
          .minimum = 1}},
    .check = check_total,
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      const int64_t total = budget_of(data, arguments);
      return within_budget(std::move(data.integers), total, arguments.integer("num_buckets"),
                           data.parts);
    }};
const Register<SamplerRecord> registered_budget(kBudget);

}  // namespace

}  // namespace headrace
