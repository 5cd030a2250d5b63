// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/asked.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/base/random.h"

namespace headrace {
namespace {

const ErrorCode kOtherLength{
    "HR0726", ErrorKind::kConfig, "epoch length differs",
    "The number of batches per epoch is known before it begins, on every rank, so each epoch of "
    "an order that is asked for must have as many records as the first. Draw a fixed number of "
    "records per epoch, or make a new loader when the number changes."};

// Epochs that are remembered: the one under way, and those that somebody looks at meanwhile.
constexpr size_t kRemembered = 4;

class Asked final : public Sampler {
 public:
  explicit Asked(AskedOrder order) : order_(std::move(order)) {
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
    if (!begins_.empty()) {  // positions beyond a batch's size are some record of it
      const auto batch = size_t(position / largest_);
      position = begins_[batch] + position % largest_ % order_.batch_sizes[batch];
    }
    return (*epoch_of(seed, epoch))[size_t(position)];
  }
  std::span<const int64_t> batch_sizes() const override { return order_.batch_sizes; }
  void forget() const override {
    MutexLock lock(mutex_);
    known_.clear();
  }
  uint64_t fingerprint() const override { return mix64(hash_name("asked"), order_.fingerprint); }
  std::string description() const override { return order_.description; }

 private:
  // shared: an epoch that is forgotten may still be read on another thread.
  using Epoch = std::shared_ptr<const std::vector<int64_t>>;
  struct Known {
    uint64_t seed = 0, epoch = 0;
    Epoch records;
  };

  Epoch epoch_of(uint64_t seed, uint64_t epoch) const {
    if (Epoch known = find(seed, epoch)) return known;
    // Without the lock: whoever answers may wait for a thread that wants an index meanwhile.
    auto records = std::make_shared<const std::vector<int64_t>>(order_.ask(seed, epoch));
    if (std::ssize(*records) != order_.positions) {
      raise(kOtherLength, "epoch " + std::to_string(epoch) + " has " +
                              std::to_string(records->size()) + " records, the first one has " +
                              std::to_string(order_.positions));
    }
    MutexLock lock(mutex_);
    known_.insert(known_.begin(), {seed, epoch, records});
    if (known_.size() > kRemembered) known_.pop_back();
    return records;
  }

  // The one that was used last comes first.
  Epoch find(uint64_t seed, uint64_t epoch) const {
    MutexLock lock(mutex_);
    const auto known = std::ranges::find_if(
        known_, [&](const Known& each) { return each.seed == seed && each.epoch == epoch; });
    if (known == known_.end()) return nullptr;
    std::rotate(known_.begin(), known, known + 1);
    return known_.front().records;
  }

  const AskedOrder order_;
  int64_t largest_ = 0;
  std::vector<int64_t> begins_;  // of batches, where the order decides how large they are
  mutable Mutex mutex_;
  mutable std::vector<Known> known_ GUARDED_BY(mutex_);
};

}  // namespace

SamplerPtr asked(AskedOrder order) {
  // One of no indices says what is wrong with an epoch without records.
  if (order.positions < 1) return from_indices({}, false);
  return std::make_shared<Asked>(std::move(order));
}

}  // namespace headrace
