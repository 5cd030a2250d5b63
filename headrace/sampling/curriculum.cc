// SPDX-License-Identifier: Apache-2.0
// Easy records first: an epoch draws from the easiest part of the records, which grows over time.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const uint64_t kCurriculumKey = hash_name("curriculum");

struct CurriculumOptions {
  double start = 1;  // fraction of the records, in epoch 0
  int64_t epochs = 1;
  int64_t draws = 0;
};

class Curriculum final : public Sampler {
 public:
  Curriculum(const std::vector<int64_t>& difficulties, const CurriculumOptions& options)
      : options_(options), records_(difficulties.size()) {
    std::iota(records_.begin(), records_.end(), 0);
    std::ranges::stable_sort(records_, {}, [&](int64_t i) { return difficulties[size_t(i)]; });
    fingerprint_ = mix64(mix64(kCurriculumKey, uint64_t(options.draws)), uint64_t(options.epochs));
    fingerprint_ = mix64(fingerprint_, uint64_t(easiest(0)));
    for (const int64_t record : records_) fingerprint_ = mix64(fingerprint_, uint64_t(record));
  }
  int64_t size() const override { return options_.draws; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const int64_t count = easiest(epoch);
    const uint64_t key = mix64(mix64(seed, epoch), kCurriculumKey);
    const Permutation order(count, mix64(key, uint64_t(position / count)));
    return records_[size_t(order(position % count))];
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(options_.draws) + " draws of the easiest " + std::to_string(easiest(0)) +
           " records, of all " + std::to_string(records_.size()) + " from epoch " +
           std::to_string(options_.epochs) + " on";
  }

 private:
  // Number of records that an epoch draws from: at least one.
  int64_t easiest(uint64_t epoch) const {
    const double done = std::min(1.0, double(epoch) / double(options_.epochs));
    const double part = options_.start + (1 - options_.start) * done;
    const auto all = std::ssize(records_);
    return std::clamp(int64_t(std::ceil(part * double(all))), int64_t{1}, int64_t(all));
  }

  const CurriculumOptions options_;
  std::vector<int64_t> records_;  // easiest first
  uint64_t fingerprint_;
};

const SamplerRecord kCurriculum{
    .name = "curriculum",
    .doc =
        "Easy records first: epoch 0 draws from the easiest fraction ``start`` of the records, "
        "each later epoch from more, and from epoch ``epochs`` on from all.\n\n"
        "An epoch has ``num_samples`` records: each available record once, in a new order, before "
        "any is repeated.",
    .example = "hr.sampling.curriculum([3, 1, 2, 9], start=0.5, epochs=2)",
    .per_record = PerRecord::kLengths,
    .given = {.name = "difficulty",
              .type = ParamType::kFloats,
              .doc = "Difficulty of each record: one number per record, small for easy ones; or "
                     "the name of a scalar field.",
              .required = true},
    .params = {{.name = "start",
                .type = ParamType::kFloat,
                .doc = "Fraction of the records in epoch 0.",
                .fallback = 0.2,
                .minimum = 0,
                .maximum = 1},
               {.name = "epochs",
                .type = ParamType::kInt,
                .doc = "The first epoch that draws from all records.",
                .fallback = int64_t{10},
                .minimum = 1},
               draws_param()},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      if (data.integers.empty()) raise(kUnusableOrder, "no records to order");
      const int64_t draws = draws_of(data, arguments);
      check_draws(draws);
      return std::make_shared<Curriculum>(data.integers,
                                          CurriculumOptions{.start = arguments.number("start"),
                                                            .epochs = arguments.integer("epochs"),
                                                            .draws = draws});
    }};
const Register<SamplerRecord> registered_curriculum(kCurriculum);

}  // namespace
}  // namespace headrace
