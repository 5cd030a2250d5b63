// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batches_by_length.h"
#include "headrace/sampling/recent.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {

namespace {

const ErrorCode kBadLengths{
    "HR0724", ErrorKind::kConfig, "missing or negative lengths",
    "Batches of similar length need one length per record, 0 or more: numbers, or the name of an "
    "integer, audio, image or text field. source.lengths(name) is -1 for a record whose header "
    "cannot be read: leave such records out, or pass the field's name instead, which counts them "
    "as 0 and leaves them to on_error=."};

const uint64_t kRecordKey = hash_name("bucket records"), kBatchKey = hash_name("bucket batches"),
               kRowKey = hash_name("bucket rows");

class Buckets final : public Sampler {
 public:
  Buckets(std::vector<int64_t> lengths, int64_t batch, int64_t pool)
      : lengths_(std::move(lengths)), batch_(batch), pool_(pool * batch) {
    fingerprint_ = mix64(mix64(hash_name("buckets"), uint64_t(batch)), uint64_t(pool));
    for (const int64_t length : lengths_) fingerprint_ = mix64(fingerprint_, uint64_t(length));
  }

  int64_t size() const override { return std::ssize(lengths_); }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return (*order_of({seed, epoch, position / pool_}))[size_t(position % pool_)];
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    while (!out.empty()) {
      const auto order = order_of({seed, epoch, begin / pool_});
      const int64_t first = begin % pool_;
      const auto run = std::min<int64_t>(std::ssize(out), std::ssize(*order) - first);
      std::copy_n(order->begin() + first, run, out.begin());
      out = out.subspan(size_t(run));
      begin += run;
    }
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled into batches of " + std::to_string(batch_) +
           " of similar length (in pools of " + std::to_string(pool_ / batch_) + ")";
  }

 private:
  struct Pool {
    uint64_t seed = 0, epoch = 0;
    int64_t number = 0;
    bool operator==(const Pool&) const = default;
  };
  using Order = std::vector<int64_t>;

  Recent<Pool, Order>::Made order_of(const Pool& pool) const {
    return recent_.of(pool, [&] { return made_order(pool.seed, pool.epoch, pool.number); });
  }

  std::vector<int64_t> made_order(uint64_t seed, uint64_t epoch, int64_t number) const {
    const uint64_t key = mix64(seed, epoch), own = mix64(key, uint64_t(number));
    const Permutation shuffled(size(), mix64(key, kRecordKey));
    const int64_t begin = number * pool_, count = std::min(pool_, size() - begin);
    std::vector<int64_t> records(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) records[size_t(i)] = shuffled(begin + i);
    const int64_t batches = count / batch_;  // whole batches; the rest stays in place
    const auto end = records.begin() + batches * batch_;
    std::stable_sort(records.begin(), end, [&](int64_t a, int64_t b) {
      return lengths_[size_t(a)] < lengths_[size_t(b)];
    });
    if (batches == 0) return records;
    const Permutation places(batches, mix64(own, kBatchKey));
    std::vector<int64_t> out(records);
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t from = places(b);
      const int64_t turn = Draws(seed, epoch, uint64_t(number * pool_ + b), kRowKey).below(batch_);
      const std::vector<int64_t> rows = balanced_rows(batch_, turn);
      for (int64_t row = 0; row < batch_; ++row) {
        out[size_t(b * batch_ + row)] = records[size_t(from * batch_ + rows[size_t(row)])];
      }
    }
    return out;
  }

  const std::vector<int64_t> lengths_;
  const int64_t batch_, pool_;  // positions
  uint64_t fingerprint_;
  mutable Recent<Pool, Order> recent_{2};  // two are in use at the end of a pool
};

}  // namespace

void check_lengths(std::span<const int64_t> lengths, int64_t parts) {
  if (lengths.empty()) raise(kBadLengths, "no lengths to sort by");
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths[i];
    if (length >= 0) continue;
    const ParamValue value = parts == 1 ? ParamValue(length) : double(length) / double(parts);
    raise(kBadLengths, "record " + std::to_string(i) + " has a length of " + text_of(value));
  }
}

SamplerPtr buckets(std::vector<int64_t> lengths, int64_t batch, int64_t pool, int64_t parts) {
  check_lengths(lengths, parts);
  return std::make_shared<Buckets>(std::move(lengths), batch, pool);
}

namespace {

const SamplerRecord kBuckets{
    .name = "buckets",
    .doc =
        "Each record once, shuffled, in batches of similar length.\n\n"
        "``pool`` batches of a shuffled epoch are sorted by length and divided into batches, which "
        "are shuffled again: with a pool of 100, batches have a twentieth of the padding of random "
        "ones. The incomplete batch at the end of an epoch has random records.",
    .example = "hr.sampling.buckets([3, 1, 2], batch_size=2)",
    .per_record = PerRecord::kLengths,
    .given = {.name = "lengths",
              .type = ParamType::kFloats,
              .doc =
                  "One length per record, which need not be an integer (seconds); or the name of a "
                  "scalar field, or of an audio field, whose headers are then read once "
                  "(``source.lengths(name)`` returns the lengths, so that you can store them).",
              .required = true},
    .params = {{.name = "batch_size",
                .type = ParamType::kInt,
                .doc = "The loader's global batch size, over all ranks.",
                .required = true,
                .minimum = 1},
               {.name = "pool",
                .type = ParamType::kInt,
                .doc = "Number of batches that are sorted together.",
                .fallback = int64_t{100},
                .minimum = 1}},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      return buckets(std::move(data.integers), arguments.integer("batch_size"),
                     arguments.integer("pool"), data.parts);
    }};
const Register<SamplerRecord> registered_buckets(kBuckets);

}  // namespace

}  // namespace headrace
