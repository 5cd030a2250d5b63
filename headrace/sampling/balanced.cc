// SPDX-License-Identifier: Apache-2.0
// Draws each label equally often: in expectation, or exactly.
#include <map>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const uint64_t kBalancedKey = hash_name("sampler"), kRoundKey = hash_name("balanced round"),
               kPassKey = hash_name("balanced pass");

std::vector<std::vector<int64_t>> records_by_label(const std::vector<int64_t>& labels) {
  std::map<int64_t, std::vector<int64_t>> by_label;
  for (size_t i = 0; i < labels.size(); ++i) {
    by_label[labels[i]].push_back(static_cast<int64_t>(i));
  }
  std::vector<std::vector<int64_t>> out;
  for (auto& [label, records] : by_label) out.push_back(std::move(records));
  return out;
}

uint64_t with_labels(uint64_t fingerprint, const std::vector<int64_t>& labels) {
  for (const int64_t label : labels) fingerprint = mix64(fingerprint, uint64_t(label));
  return fingerprint;
}

class Balanced final : public Sampler {
 public:
  Balanced(const std::vector<int64_t>& labels, int64_t draws)
      : draws_(draws),
        records_(records_by_label(labels)),
        fingerprint_(with_labels(mix64(hash_name("balanced"), draws), labels)) {}
  int64_t size() const override { return draws_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    Draws draws(seed, epoch, static_cast<uint64_t>(position), kBalancedKey);
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

// Endless rounds that contain each label once; an epoch is a run of `draws` positions. The label's
// record in round r is element r of its own sequence of permuted passes.
class BalancedExactly final : public Sampler {
 public:
  BalancedExactly(const std::vector<int64_t>& labels, int64_t draws)
      : draws_(draws),
        records_(records_by_label(labels)),
        fingerprint_(with_labels(mix64(kRoundKey, uint64_t(draws)), labels)) {}
  int64_t size() const override { return draws_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const auto labels = static_cast<uint64_t>(records_.size());
    const uint64_t place = epoch * uint64_t(draws_) + uint64_t(position), round = place / labels;
    const Permutation order(int64_t(labels), mix64(mix64(seed, round), kRoundKey));
    const auto label = static_cast<uint64_t>(order(int64_t(place % labels)));
    const std::vector<int64_t>& records = records_[label];
    const uint64_t pass = round / records.size();
    const Permutation mixed(std::ssize(records), mix64(mix64(mix64(seed, pass), kPassKey), label));
    return records[size_t(mixed(int64_t(round % records.size())))];
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(draws_) + " draws, each of " + std::to_string(records_.size()) +
           " labels equally often";
  }

 private:
  const int64_t draws_;
  const std::vector<std::vector<int64_t>> records_;
  const uint64_t fingerprint_;
};

}  // namespace

SamplerPtr balanced(const std::vector<int64_t>& labels, int64_t draws) {
  check_draws(draws);
  if (labels.empty()) raise(kUnusableOrder, "no labels to balance");
  return std::make_shared<Balanced>(labels, draws);
}

SamplerPtr balanced_exactly(const std::vector<int64_t>& labels, int64_t draws) {
  check_draws(draws);
  if (labels.empty()) raise(kUnusableOrder, "no labels to balance");
  return std::make_shared<BalancedExactly>(labels, draws);
}

namespace {

const SamplerRecord kBalanced{
    .name = "balanced",
    .doc =
        "Draws each label equally often, and then a record with that label.\n\n"
        "Without replacement, every n consecutive draws contain each of the n labels once, and all "
        "records of a label are drawn before any is repeated, even across epochs.",
    .example = "hr.sampling.balanced(\"label\")",
    .per_record = PerRecord::kLabels,
    .given = {.name = "field",
              .type = ParamType::kString,
              .doc = "An integer field, or a value for each record (integers or strings).",
              .fallback = std::string("label")},
    .params = {draws_param(), replacement_param()},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      const int64_t draws = draws_of(data, arguments);
      return arguments.flag("replacement") ? balanced(data.integers, draws)
                                           : balanced_exactly(data.integers, draws);
    }};
const Register<SamplerRecord> registered_balanced(kBalanced);

}  // namespace

}  // namespace headrace
