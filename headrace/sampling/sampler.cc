// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "headrace/base/error.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const ErrorCode kBadWeights{
    "HR0722", ErrorKind::kConfig, "invalid sampler",
    "A sampler draws at least once per epoch, from at least one record: weights must be finite, "
    "with a finite sum, not negative and not all zero; labels and index arrays must not be empty; "
    "indices must lie inside the source."};

void check_draws(int64_t draws) {
  if (draws > 0) return;
  raise(kBadWeights, "draws=" + std::to_string(draws) + " leaves an epoch without a record",
        "at least 1; leave draws out for as many as there are records");
}

const uint64_t kOrderKey = hash_name("order"), kDrawKey = hash_name("sampler");

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

// Walker's alias method in Vose's form: one table look-up a draw.
class Weighted final : public Sampler {
 public:
  Weighted(const std::vector<double>& weights, int64_t draws)
      : draws_(draws),
        accept_(weights.size()),
        alias_(weights.size()),
        fingerprint_(mix64(hash_name("weighted"), draws)) {
    double total = 0;
    for (double weight : weights) {
      if (!(weight >= 0) || !std::isfinite(weight)) {
        raise(kBadWeights,
              "weights must be finite and not negative (got " + std::to_string(weight) + ")");
      }
      total += weight;
      fingerprint_ = mix64(fingerprint_, std::bit_cast<uint64_t>(weight + 0.0));  // -0 is 0
    }
    if (!(total > 0)) raise(kBadWeights, "at least one weight must be positive");
    if (!std::isfinite(total))
      raise(kBadWeights, "the weights add up to more than a float64 holds");
    std::vector<int64_t> small, large;
    for (size_t i = 0; i < weights.size(); ++i) {
      accept_[i] = weights[i] * static_cast<double>(weights.size()) / total;
      alias_[i] = static_cast<int64_t>(i);
      (accept_[i] < 1 ? small : large).push_back(static_cast<int64_t>(i));
    }
    while (!small.empty() && !large.empty()) {
      const int64_t less = small.back(), more = large.back();
      small.pop_back();
      alias_[less] = more;
      accept_[more] -= 1 - accept_[less];
      if (accept_[more] < 1) {
        large.pop_back();
        small.push_back(more);
      }
    }
    for (int64_t i : large) accept_[i] = 1;
    for (int64_t i : small) {
      if (weights[i] > 0) accept_[i] = 1;  // rounding left it a hair below
    }
  }
  int64_t size() const override { return draws_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    Draws draws(seed, epoch, static_cast<uint64_t>(position), kDrawKey);
    const int64_t i = draws.below(static_cast<int64_t>(accept_.size()));
    return draws.uniform() < accept_[i] ? i : alias_[i];
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(draws_) + " weighted draws with replacement";
  }

 private:
  int64_t draws_;
  std::vector<double> accept_;
  std::vector<int64_t> alias_;
  uint64_t fingerprint_;
};

class Balanced final : public Sampler {
 public:
  Balanced(const std::vector<int64_t>& labels, int64_t draws)
      : draws_(draws), fingerprint_(mix64(hash_name("balanced"), draws)) {
    std::map<int64_t, std::vector<int64_t>> by_label;
    for (size_t i = 0; i < labels.size(); ++i) {
      by_label[labels[i]].push_back(static_cast<int64_t>(i));
      fingerprint_ = mix64(fingerprint_, labels[i]);
    }
    for (auto& [label, records] : by_label) records_.push_back(std::move(records));
  }
  int64_t size() const override { return draws_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    Draws draws(seed, epoch, static_cast<uint64_t>(position), kDrawKey);
    const auto& records = records_[draws.below(static_cast<int64_t>(records_.size()))];
    return records[draws.below(static_cast<int64_t>(records.size()))];
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(draws_) + " draws balanced over " + std::to_string(records_.size()) +
           " labels";
  }

 private:
  int64_t draws_;
  std::vector<std::vector<int64_t>> records_;
  uint64_t fingerprint_;
};

}  // namespace

SamplerPtr sequential(int64_t records) { return std::make_shared<Sequential>(records); }

SamplerPtr shuffled(int64_t records) { return std::make_shared<Shuffled>(records); }

SamplerPtr from_indices(std::vector<int64_t> indices, bool shuffle) {
  if (indices.empty()) raise(kBadWeights, "the index array is empty");
  return std::make_shared<FromIndices>(std::move(indices), shuffle);
}

SamplerPtr weighted(const std::vector<double>& weights, int64_t draws) {
  check_draws(draws);
  return std::make_shared<Weighted>(weights, draws);
}

SamplerPtr balanced(const std::vector<int64_t>& labels, int64_t draws) {
  check_draws(draws);
  if (labels.empty()) raise(kBadWeights, "there are no labels to balance");
  return std::make_shared<Balanced>(labels, draws);
}

Param draws_param() {
  return {.name = "draws",
          .type = ParamType::kInt,
          .doc = "Records of an epoch. None: as many as the source has.",
          .minimum = 1};
}

int64_t draws_of(const SamplerData& data, const Arguments& arguments) {
  return arguments.is_none("draws") ? data.records : arguments.integer("draws");
}

namespace {

const SamplerRecord kWeighted{
    .name = "weighted",
    .doc = "``draws`` records an epoch, drawn with replacement in proportion to ``weights``.",
    .example = "hr.sampling.weighted([0.5, 2, 1], draws=6)",
    .per_record = PerRecord::kWeights,
    .given = {.name = "weights",
              .type = ParamType::kFloats,
              .doc = "One number >= 0 a record.",
              .required = true},
    .params = {draws_param()},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      return weighted(data.weights, draws_of(data, arguments));
    }};
const Register<SamplerRecord> registered_weighted(kWeighted);

const SamplerRecord kBalanced{
    .name = "balanced",
    .doc = "Each value of an integer field equally often, then a record of that value.",
    .example = "hr.sampling.balanced(\"label\")",
    .per_record = PerRecord::kLabels,
    .given = {.name = "field",
              .type = ParamType::kString,
              .doc = "An integer field.",
              .fallback = std::string("label")},
    .params = {draws_param()},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      return balanced(data.integers, draws_of(data, arguments));
    }};
const Register<SamplerRecord> registered_balanced(kBalanced);

const SamplerRecord kIndices{
    .name = "indices",
    .doc =
        "These records each epoch, in this order, or shuffled with the loader's ``shuffle=True``.",
    .example = "hr.sampling.indices([3, 0, -1])",
    .per_record = PerRecord::kIndices,
    .given = {.name = "array",
              .type = ParamType::kInts,
              .doc = "Numbers of records; negative ones count from the end.",
              .required = true},
    .shuffles = true,
    .make = [](SamplerData data, const Arguments&) -> SamplerPtr {
      return from_indices(std::move(data.integers), data.shuffle);
    }};
const Register<SamplerRecord> registered_indices(kIndices);

}  // namespace
}  // namespace headrace
