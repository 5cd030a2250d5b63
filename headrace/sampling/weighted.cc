// SPDX-License-Identifier: Apache-2.0
// Records drawn in proportion to weights, with replacement and without.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/number_text.h"
#include "headrace/base/random.h"
#include "headrace/sampling/recent.h"
#include "headrace/sampling/sampler_record.h"

namespace headrace {
namespace {

const uint64_t kDrawKey = hash_name("sampler"), kRaceKey = hash_name("weighted once");

double checked_total(const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      raise(kUnusableOrder,
            "weights must be finite and not negative (got " + shortest_text(weight) + ")");
    }
    total += weight;
  }
  if (!(total > 0)) raise(kUnusableOrder, "at least one weight must be positive");
  if (!std::isfinite(total)) {
    raise(kUnusableOrder, "the sum of the weights exceeds the range of float64");
  }
  return total;
}

uint64_t with_weights(uint64_t fingerprint, const std::vector<double>& weights) {
  for (const double weight : weights) {
    fingerprint = mix64(fingerprint, std::bit_cast<uint64_t>(weight + 0.0));  // -0 becomes 0
  }
  return fingerprint;
}

// Walker's alias method in Vose's form: one table lookup per draw.
class Weighted final : public Sampler {
 public:
  Weighted(const std::vector<double>& weights, int64_t draws)
      : draws_(draws),
        accept_(weights.size()),
        alias_(weights.size()),
        fingerprint_(mix64(hash_name("weighted"), draws)) {
    const double total = checked_total(weights);
    fingerprint_ = with_weights(fingerprint_, weights);
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
      if (weights[i] > 0) accept_[i] = 1;  // rounding left it slightly below
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

// A race: record i arrives after a time that is exponential with rate weight[i], and the first
// `num_samples` arrivals form the epoch (Efraimidis and Spirakis, 2006). The next arrival is each
// remaining record in proportion to its weight.
class WeightedOnce final : public Sampler {
 public:
  WeightedOnce(std::vector<double> weights, int64_t draws)
      : draws_(draws), weights_(std::move(weights)) {
    checked_total(weights_);
    fingerprint_ = with_weights(mix64(kRaceKey, uint64_t(draws)), weights_);
    const auto positive = std::ranges::count_if(weights_, [](double w) { return w > 0; });
    if (draws <= positive) return;
    raise(kUnusableOrder,
          "num_samples=" + std::to_string(draws) + " without replacement, but only " +
              std::to_string(positive) + " of " + std::to_string(weights_.size()) +
              " weights are positive",
          "use num_samples=" + std::to_string(positive) + ", or replacement=True");
  }
  int64_t size() const override { return draws_; }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return (*order_of(seed, epoch))[size_t(position)];
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    const auto order = order_of(seed, epoch);
    std::copy_n(order->begin() + begin, out.size(), out.begin());
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return std::to_string(draws_) + " weighted draws without replacement";
  }

 private:
  using Epoch = std::pair<uint64_t, uint64_t>;  // seed, epoch
  using Order = std::vector<int64_t>;
  struct Arrival {
    double time;
    int64_t record;
    auto operator<=>(const Arrival&) const = default;
  };

  Recent<Epoch, Order>::Made order_of(uint64_t seed, uint64_t epoch) const {
    return recent_.of({seed, epoch}, [&] {
      std::vector<Arrival> arrivals;
      for (size_t i = 0; i < weights_.size(); ++i) {
        if (!(weights_[i] > 0)) continue;
        Draws draws(seed, epoch, i, kRaceKey);
        arrivals.push_back({-portable_log(1 - draws.uniform()) / weights_[i], int64_t(i)});
      }
      const auto end = arrivals.begin() + draws_;
      std::ranges::partial_sort(arrivals, end);
      Order order;
      std::transform(arrivals.begin(), end, std::back_inserter(order),
                     [](const Arrival& arrival) { return arrival.record; });
      return order;
    });
  }

  const int64_t draws_;
  const std::vector<double> weights_;
  uint64_t fingerprint_;
  mutable Recent<Epoch, Order> recent_{2};  // two are in use at the transition between epochs
};

}  // namespace

SamplerPtr weighted(const std::vector<double>& weights, int64_t draws) {
  check_draws(draws);
  return std::make_shared<Weighted>(weights, draws);
}

SamplerPtr weighted_once(std::vector<double> weights, int64_t draws) {
  check_draws(draws);
  return std::make_shared<WeightedOnce>(std::move(weights), draws);
}

namespace {

const SamplerRecord kWeighted{
    .name = "weighted",
    .doc =
        "Draws ``num_samples`` records per epoch in proportion to ``weights``.\n\n"
        "Without replacement, each draw is in proportion to the weights of the remaining records, "
        "as in torch.multinomial; the order of an epoch then takes 16 bytes per record and 8 per "
        "draw.",
    .example = "hr.sampling.weighted([0.5, 2, 1], num_samples=2, replacement=False)",
    .per_record = PerRecord::kWeights,
    .given = {.name = "weights",
              .type = ParamType::kFloats,
              .doc = "One non-negative number per record.",
              .required = true},
    .params = {draws_param(), replacement_param()},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      const int64_t draws = draws_of(data, arguments);
      if (arguments.flag("replacement")) return weighted(data.weights, draws);
      return weighted_once(std::move(data.weights), draws);
    }};
const Register<SamplerRecord> registered_weighted(kWeighted);

}  // namespace

}  // namespace headrace
