// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/external_order.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/sampling/recent.h"

namespace headrace {
namespace {

const ErrorCode kOtherLength{
    "HR0726", ErrorKind::kConfig, "epoch length differs",
    "Every rank must know the number of batches before an epoch starts, so all epochs of an order "
    "computed in Python must have as many records as the first. Draw a fixed number of records per "
    "epoch, or create a new loader when the number changes."};

// Epochs that are cached: the current one, and those inspected in the meantime.
constexpr size_t kRemembered = 4;

class ExternalOrderSampler final : public Sampler {
 public:
  explicit ExternalOrderSampler(ExternalOrder order) : order_(std::move(order)) {
    if (order_.batch_sizes.empty()) return;
    largest_ = std::ranges::max(order_.batch_sizes);
    begins_.resize(order_.batch_sizes.size());
    std::exclusive_scan(order_.batch_sizes.begin(), order_.batch_sizes.end(), begins_.begin(),
                        int64_t{0});
  }

  int64_t size() const override {
    return begins_.empty() ? order_.positions : largest_ * std::ssize(begins_);
  }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const auto order = epoch_of(seed, epoch);
    return (*order)->index(seed, epoch, place_in(**order, position));
  }
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    const auto order = epoch_of(seed, epoch);
    if (begins_.empty() || decides_batches(**order)) {
      (*order)->indices(seed, epoch, begin, out);
      return;
    }
    for (int64_t& index : out) {
      index = (*order)->index(seed, epoch, place_in(**order, begin++));
    }
  }
  std::span<const int64_t> batch_sizes() const override { return order_.batch_sizes; }
  void forget() const override { known_.clear(); }
  uint64_t fingerprint() const override { return mix64(hash_name("asked"), order_.fingerprint); }
  std::string description() const override { return order_.description; }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // seed, epoch

  static bool decides_batches(const Sampler& order) { return !order.batch_sizes().empty(); }

  // In an epoch with different batch sizes: positions past a batch's size map to some record of it.
  int64_t place_in(const Sampler& order, int64_t position) const {
    if (begins_.empty() || decides_batches(order)) return position;
    const auto batch = size_t(position / largest_);
    return begins_[batch] + position % largest_ % order_.batch_sizes[batch];
  }

  Recent<Key, SamplerPtr>::Made epoch_of(uint64_t seed, uint64_t epoch) const {
    return known_.of({seed, epoch}, [&] { return checked(order_.ask(seed, epoch), epoch); });
  }

  SamplerPtr checked(SamplerPtr order, uint64_t epoch) const {
    const std::string number = "epoch " + std::to_string(epoch);
    if (decides_batches(*order)) {
      if (std::ranges::equal(order->batch_sizes(), order_.batch_sizes)) return order;
      raise(kOtherLength, number + " has batches of different sizes from the first");
    }
    if (order->size() == order_.positions) return order;
    raise(kOtherLength, number + " has " + std::to_string(order->size()) +
                            " records, but the first one has " + std::to_string(order_.positions));
  }

  const ExternalOrder order_;
  int64_t largest_ = 0;
  std::vector<int64_t> begins_;  // of batches, if the sampler decides their sizes
  // Called without a lock: the callback may wait for a thread that needs an index.
  mutable Recent<Key, SamplerPtr> known_{kRemembered};
};

}  // namespace

SamplerPtr external_order(ExternalOrder order) {
  // An epoch without records is reported as such by this check.
  if (order.positions < 1) return from_indices({}, false);
  return std::make_shared<ExternalOrderSampler>(std::move(order));
}

}  // namespace headrace
