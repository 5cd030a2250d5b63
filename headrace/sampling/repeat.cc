// SPDX-License-Identifier: Apache-2.0
// Epochs of any length: passes over the records without a pause between them.
#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const ErrorCode kNotRepeated{
    "HR0729", ErrorKind::kConfig, "sampler cannot be repeated",
    "hr.sampling.repeat() concatenates the epochs of a sampler and divides them into epochs of "
    "another length. A sampler that sets the number of records per batch cannot be divided, "
    "because its epochs must end with a complete batch. Iterate over the loader again for the next "
    "epoch, or pass a different sampler to repeat()."};

class Repeated final : public Sampler {
 public:
  Repeated(SamplerPtr order, int64_t draws) : order_(std::move(order)), draws_(draws) {}

  int64_t size() const override { return order_->size() > 0 ? draws_ : 0; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const Place place = place_of(epoch, position);
    return order_->index(seed, place.pass, place.position);
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    while (!out.empty()) {
      const Place place = place_of(epoch, begin);
      const int64_t run = std::min<int64_t>(std::ssize(out), order_->size() - place.position);
      order_->indices(seed, place.pass, place.position, out.first(size_t(run)));
      out = out.subspan(size_t(run));
      begin += run;
    }
  }
  int64_t streams() const override { return order_->streams(); }
  void forget() const override { order_->forget(); }
  uint64_t fingerprint() const override {
    return mix64(mix64(hash_name("repeated"), order_->fingerprint()), uint64_t(draws_));
  }
  std::string description() const override {
    return (draws_ == kEndless ? "without end: " : std::to_string(draws_) + " positions of: ") +
           order_->description();
  }

 private:
  struct Place {
    uint64_t pass;     // epoch of the inner sampler
    int64_t position;  // within that epoch
  };
  Place place_of(uint64_t epoch, int64_t position) const {
    const uint64_t place = epoch * uint64_t(draws_) + uint64_t(position);
    const auto records = static_cast<uint64_t>(order_->size());
    return {place / records, int64_t(place % records)};
  }

  const SamplerPtr order_;
  const int64_t draws_;
};

}  // namespace

SamplerPtr repeated(SamplerPtr order, int64_t draws) {
  check_draws(draws);
  if (!order->batch_sizes().empty()) {
    raise(kNotRepeated, "repeat() of a sampler that sets the number of records per batch (" +
                            order->description() + ")");
  }
  return std::make_shared<Repeated>(std::move(order), draws);
}

namespace {

const SamplerRecord kRepeat{
    .name = "repeat",
    .doc =
        "Epochs of any length: concatenates passes over all records, each in a new order, and "
        "divides them into epochs of ``num_samples`` records.\n\n"
        "Use it for a number of steps per epoch that does not depend on the size of the dataset "
        "(``num_samples`` is steps times the global batch), or for runs that count steps: without "
        "``num_samples`` there is one endless epoch. The order needs no memory, however long it "
        "is.",
    .example = "hr.sampling.repeat(num_samples=1000)",
    .per_record = PerRecord::kOrder,
    .given = {.name = "order",
              .type = ParamType::kString,
              .doc = "Sampler to repeat: one of this module, or record indices. None: all "
                     "records, in the order of the loader's ``shuffle``.",
              .or_none = true},
    .params = {{.name = "num_samples",
                .type = ParamType::kInt,
                .doc = "Records per epoch. None: one endless epoch.",
                .minimum = 1}},
    .shuffles = true,
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      return repeated(std::move(data.order), arguments.is_none("num_samples")
                                                 ? kEndless
                                                 : arguments.integer("num_samples"));
    }};
const Register<SamplerRecord> registered_repeat(kRepeat);

}  // namespace

}  // namespace headrace
