// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/sampler.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"
#include "headrace/sources/source.h"

namespace headrace {
namespace {

const uint64_t kOrderKey = hash_name("order");

Permutation order_of(int64_t records, uint64_t seed, uint64_t epoch) {
  return Permutation(records, mix64(mix64(seed, epoch), kOrderKey));
}

class Sequential final : public Sampler {
 public:
  explicit Sequential(int64_t records) : records_(records) {}
  int64_t size() const override { return records_; }
  int64_t index(uint64_t, uint64_t, int64_t position) const override { return position; }
  bool in_order() const override { return true; }
  uint64_t fingerprint() const override { return mix64(hash_name("sequential"), records_); }
  std::string description() const override { return "sequential"; }

 private:
  int64_t records_;
};

class Shuffled final : public Sampler {
 public:
  explicit Shuffled(int64_t records) : records_(records) {}
  int64_t size() const override { return records_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return order_of(records_, seed, epoch)(position);
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    const Permutation order = order_of(records_, seed, epoch);
    for (int64_t& index : out) index = order(begin++);
  }
  std::optional<Permutation> permutation(uint64_t seed, uint64_t epoch) const override {
    return order_of(records_, seed, epoch);
  }
  uint64_t fingerprint() const override { return mix64(hash_name("shuffled"), records_); }
  std::string description() const override { return "shuffled (keyed permutation)"; }

 private:
  int64_t records_;
};

class FromIndices final : public Sampler {
 public:
  FromIndices(std::vector<int64_t> indices, bool shuffle)
      : indices_(std::move(indices)),
        shuffle_(shuffle),
        fingerprint_(hash_name("indices") + shuffle) {
    for (int64_t index : indices_) fingerprint_ = mix64(fingerprint_, index);
  }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return indices_[shuffle_ ? order_of(size(), seed, epoch)(position) : position];
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(indices_.size()) + " given indices" + (shuffle_ ? ", shuffled" : "");
  }

 private:
  std::vector<int64_t> indices_;
  bool shuffle_;
  uint64_t fingerprint_;
};

const SamplerRecord kIndices{
    .name = "indices",
    .doc =
        "The given records in each epoch, in this order, or shuffled with the loader's "
        "``shuffle=True``.",
    .example = "hr.sampling.indices([3, 0, -1])",
    .per_record = PerRecord::kIndices,
    .given = {.name = "array",
              .type = ParamType::kInts,
              .doc = "Record numbers; negative ones count from the end.",
              .required = true},
    .shuffles = true,
    .make = [](SamplerData data, const Arguments&) -> SamplerPtr {
      return from_indices(std::move(data.integers), data.shuffle);
    }};
const Register<SamplerRecord> registered_indices(kIndices);

const uint64_t kSourceOrderKey = hash_name("order of the source");

class ShuffledBySource final : public Sampler {
 public:
  explicit ShuffledBySource(SourcePtr source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return source_->shuffled(mix64(mix64(seed, epoch), kSourceOrderKey), position);
  }
  uint64_t fingerprint() const override { return mix64(kSourceOrderKey, source_->fingerprint()); }
  std::string description() const override { return "shuffled, in the source's proportions"; }

 private:
  const SourcePtr source_;
};

}  // namespace

const ErrorCode kUnusableOrder{
    "HR0722", ErrorKind::kConfig, "invalid sampler",
    "A sampler draws at least one record per epoch: weights must be finite, with a finite sum, not "
    "negative and not all zero; labels and index arrays must not be empty; indices must lie inside "
    "the source. Without replacement an epoch draws each record at most once."};

SamplerPtr sequential(int64_t records) { return std::make_shared<Sequential>(records); }

SamplerPtr shuffled(int64_t records) { return std::make_shared<Shuffled>(records); }

SamplerPtr from_indices(std::vector<int64_t> indices, bool shuffle) {
  if (indices.empty()) raise(kUnusableOrder, "the index array is empty");
  return std::make_shared<FromIndices>(std::move(indices), shuffle);
}

void check_draws(int64_t draws) {
  if (draws > 0) return;
  raise(kUnusableOrder, "num_samples=" + std::to_string(draws) + " makes epochs empty",
        "use at least 1, or omit num_samples to draw as many records as the source has");
}

Param draws_param() {
  return {.name = "num_samples",
          .type = ParamType::kInt,
          .doc = "Records per epoch. None: as many as the source has.",
          .minimum = 1};
}

int64_t draws_of(const SamplerData& data, const Arguments& arguments) {
  return arguments.is_none("num_samples") ? data.records : arguments.integer("num_samples");
}

Param replacement_param() {
  return {.name = "replacement",
          .type = ParamType::kBool,
          .doc = "Whether a record may be drawn again before all others have been.",
          .fallback = true};
}

void wrapped_indices(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t begin,
                     int64_t size, std::span<int64_t> out) {
  while (!out.empty()) {
    const int64_t position = begin % size;
    const auto run = static_cast<size_t>(std::min<int64_t>(std::ssize(out), size - position));
    sampler.indices(seed, epoch, position, out.first(run));
    out = out.subspan(run);
    begin += static_cast<int64_t>(run);
  }
}

SamplerPtr shuffled_by(const SourcePtr& source) {
  if (!source->shuffles_itself()) return shuffled(source->size());
  return std::make_shared<ShuffledBySource>(source);
}

}  // namespace headrace
