// SPDX-License-Identifier: Apache-2.0
// Batches of one label each: the sampler decides how many records a batch has.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const uint64_t kTemplateKey = hash_name("template batches");

class TemplateBatches final : public Sampler {
 public:
  TemplateBatches(const std::vector<int64_t>& labels, int64_t most)
      : fingerprint_(mix64(kTemplateKey, uint64_t(most))) {
    std::map<int64_t, std::vector<int64_t>> by_label;
    for (size_t i = 0; i < labels.size(); ++i) {
      by_label[labels[i]].push_back(int64_t(i));
      fingerprint_ = mix64(fingerprint_, uint64_t(labels[i]));
    }
    for (auto& [label, records] : by_label) {
      const int64_t count = std::ssize(records);
      for (int64_t first = 0; first < count; first += most) {
        batches_.push_back({records_.size(), first});
        sizes_.push_back(std::min(most, count - first));
      }
      records_.push_back(std::move(records));
    }
    if (!sizes_.empty()) largest_ = std::ranges::max(sizes_);
  }

  int64_t size() const override { return std::ssize(sizes_) * largest_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const auto batch = size_t(position / largest_);
    const auto& [label, first] = batches_[batch];
    const std::vector<int64_t>& records = records_[label];
    const Permutation order(std::ssize(records),
                            mix64(mix64(mix64(seed, epoch), kTemplateKey), label));
    return records[size_t(order(first + position % largest_ % sizes_[batch]))];
  }
  std::span<const int64_t> batch_sizes() const override { return sizes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(sizes_.size()) + " batches of one label each";
  }

 private:
  std::vector<std::vector<int64_t>> records_;        // by label
  std::vector<std::pair<size_t, int64_t>> batches_;  // label, and the index of the label's first
                                                     // record
  std::vector<int64_t> sizes_;
  int64_t largest_ = 0;
  uint64_t fingerprint_;
};

const SamplerRecord kTemplateBatches{
    .name = "template_batches",
    .doc = "Each record once, shuffled, in batches of records with one label.",
    .example = "hr.sampling.template_batches(\"label\", most=16)",
    .per_record = PerRecord::kLabels,
    .given = {.name = "field",
              .type = ParamType::kString,
              .doc = "An integer field.",
              .required = true},
    .params = {{.name = "most",
                .type = ParamType::kInt,
                .doc = "Records of a batch, at most.",
                .fallback = int64_t{16},
                .minimum = 1}},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      return std::make_shared<TemplateBatches>(data.integers, arguments.integer("most"));
    }};
const Register<SamplerRecord> registered_template_batches(kTemplateBatches);

}  // namespace
}  // namespace headrace
