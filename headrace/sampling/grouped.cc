// SPDX-License-Identifier: Apache-2.0
// Batches of records with the same key: one resolution, one language, one bucket of lengths.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const ErrorCode kBadGroups{
    "HR0755", ErrorKind::kConfig, "no group fills a batch",
    "hr.sampling.grouped() makes batches of records with the same key. batch_size= is one "
    "number, or one for each key in sorted order, and so is last=. With last=\"drop\", a key with "
    "fewer records than a batch gives no batch; if that is true for all keys, the epoch is empty."};

const uint64_t kGroupKey = hash_name("grouped"), kGroupPlaces = hash_name("grouped places");

enum class Remainder { kKeep, kDrop, kPad };

class Grouped final : public Sampler {
 public:
  Grouped(const std::vector<int64_t>& keys, const std::vector<int64_t>& batch_sizes,
          const std::vector<Remainder>& remainders)
      : fingerprint_(kGroupKey) {
    for (const Remainder rest : remainders) fingerprint_ = mix64(fingerprint_, uint64_t(rest));
    std::map<int64_t, std::vector<int64_t>> by_key;
    for (size_t i = 0; i < keys.size(); ++i) {
      by_key[keys[i]].push_back(int64_t(i));
      fingerprint_ = mix64(fingerprint_, uint64_t(keys[i]));
    }
    for (const int64_t size : batch_sizes) fingerprint_ = mix64(fingerprint_, uint64_t(size));
    expect_one_or_each("batch_size", batch_sizes.size(), by_key.size());
    expect_one_or_each("last", remainders.size(), by_key.size());
    for (auto& [key, records] : by_key) {
      const size_t group = records_.size();
      add_group(std::move(records), batch_sizes[batch_sizes.size() == 1 ? 0 : group],
                remainders[remainders.size() == 1 ? 0 : group]);
    }
    if (batches_.empty()) {
      raise(kBadGroups, "last=\"drop\" drops all batches: every key has fewer records than a batch",
            "use a smaller batch_size, or last=\"keep\"");
    }
    place();
  }

  int64_t size() const override { return std::ssize(batches_) * largest_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const Batch& batch = batches_[size_t(position / largest_)];
    const std::vector<int64_t>& records = records_[batch.group];
    const int64_t slot = batch.first + position % largest_ % batch.count;
    const Permutation order(std::ssize(records),
                            mix64(mix64(mix64(seed, epoch), kGroupKey), batch.group));
    return records[size_t(order(slot % std::ssize(records)))];
  }
  std::span<const int64_t> batch_sizes() const override { return sizes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled into " + std::to_string(batches_.size()) + " batches, each of one of " +
           std::to_string(records_.size()) + " keys" +
           (dropped_ > 0 ? " (" + std::to_string(dropped_) + " records dropped per epoch)" : "") +
           (repeated_ > 0 ? " (" + std::to_string(repeated_) + " records twice per epoch)" : "");
  }

 private:
  struct Batch {
    uint64_t group = 0;
    int64_t first = 0, count = 0;  // range of the group's slots; past its records it wraps around
  };

  static void expect_one_or_each(const char* name, size_t values, size_t keys) {
    if (values == 1 || values == keys) return;
    raise(kBadGroups,
          std::string(name) + " has " + std::to_string(values) + " values, but there are " +
              std::to_string(keys) + " keys",
          "one value, or one for each key in sorted order");
  }

  void add_group(std::vector<int64_t> records, int64_t most, Remainder rest) {
    const auto group = uint64_t(records_.size());
    const auto count = std::ssize(records);
    const int64_t whole = count / most, left = count % most;
    if (rest ==
        Remainder::kKeep) {  // sizes that differ by at most one: no batch is a small remainder
      const int64_t batches = (count + most - 1) / most;
      for (int64_t i = 0; i < batches; ++i) {
        const int64_t first = count * i / batches;
        batches_.push_back({group, first, count * (i + 1) / batches - first});
      }
    } else {
      const bool pads = rest == Remainder::kPad && left > 0;
      for (int64_t i = 0; i < whole + (pads ? 1 : 0); ++i) {
        batches_.push_back({group, i * most, most});
      }
      if (pads) repeated_ += most - left;
      if (rest == Remainder::kDrop) dropped_ += left;
    }
    records_.push_back(std::move(records));
  }

  // The order of batches is the same in every epoch, so that the size of batch k never changes.
  void place() {
    const Permutation places(std::ssize(batches_), kGroupPlaces);
    std::vector<Batch> placed(batches_.size());
    for (size_t k = 0; k < placed.size(); ++k) {
      placed[k] = batches_[size_t(places(int64_t(k)))];
      sizes_.push_back(placed[k].count);
    }
    batches_ = std::move(placed);
    largest_ = std::ranges::max(sizes_);
  }

  std::vector<std::vector<int64_t>> records_;  // by group
  std::vector<Batch> batches_;                 // in the order of an epoch
  std::vector<int64_t> sizes_;
  int64_t largest_ = 0, dropped_ = 0, repeated_ = 0;
  uint64_t fingerprint_;
};

const SamplerRecord kGrouped{
    .name = "grouped",
    .doc =
        "Batches of records with the same key: one resolution, one language, one bucket.\n\n"
        "Each epoch shuffles the records of each key. The size and the key of batch k are the same "
        "in every epoch, so all epochs and ranks have the same number of batches. Do not pass "
        "batch_size to the loader. ``np.digitize(lengths, bounds)`` makes keys from your own "
        "bucket boundaries.",
    .example = "hr.sampling.grouped([0, 1, 0, 1], batch_size=2)",
    .per_record = PerRecord::kLabels,
    .given = {.name = "key",
              .type = ParamType::kString,
              .doc = "A value for each record (integers or strings), or the name of an integer "
                     "field.",
              .required = true},
    .params =
        {{.name = "batch_size",
          .type = ParamType::kInts,
          .doc = "Number of records per batch, over all ranks: one number, or one for each key in "
                 "sorted order.",
          .required = true,
          .minimum = 1,
          .maximum = 2147483647,
          .min_count = 1},
         {.name = "last",
          .type = ParamType::kStrings,
          .doc =
              "If a key's records do not fill its last batch: \"keep\" makes its batches differ by "
              "one record at most, \"drop\" leaves out different records in each epoch, \"pad\" "
              "repeats the first records of the key. One value, or one for each key in sorted "
              "order.",
          .fallback = std::string("keep"),
          .choices = {"keep", "drop", "pad"},
          .min_count = 1}},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      if (data.integers.empty()) raise(kUnusableOrder, "no records to group");
      std::vector<Remainder> remainders;
      for (const std::string& last : arguments.texts("last")) {
        remainders.push_back(last == "keep"   ? Remainder::kKeep
                             : last == "drop" ? Remainder::kDrop
                                              : Remainder::kPad);
      }
      return std::make_shared<Grouped>(data.integers, arguments.integers("batch_size"), remainders);
    }};
const Register<SamplerRecord> registered_grouped(kGrouped);

}  // namespace
}  // namespace headrace
