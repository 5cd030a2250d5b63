// SPDX-License-Identifier: Apache-2.0
// Shuffling for disks and networks on which a random read costs a page: blocks of neighbouring
// records are permuted, and records are permuted inside a window of some blocks. At any time only
// the window's blocks are read from.
#include <algorithm>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

const uint64_t kBlockKey = hash_name("blocks"), kWindowKey = hash_name("window");

class ShuffledBlocks final : public Sampler {
 public:
  ShuffledBlocks(std::vector<int64_t> ends, int64_t window)
      : ends_(std::move(ends)),
        window_(window),
        fingerprint_(mix64(hash_name("shuffled blocks"), static_cast<uint64_t>(window))) {
    std::erase_if(ends_, [before = int64_t{0}](int64_t end) mutable {
      return std::exchange(before, end) == end;  // an empty block
    });
    for (const int64_t end : ends_) fingerprint_ = mix64(fingerprint_, static_cast<uint64_t>(end));
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled by blocks (" + std::to_string(ends_.size()) + " blocks, " +
           std::to_string(window_) + " in a window)";
  }

  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const EpochPtr order = epoch_of(seed, epoch);
    const int64_t window = window_of(*order, position);
    const int64_t begin = begin_of(*order, window), end = end_of(*order, window);
    const uint64_t key =
        mix64(mix64(mix64(seed, epoch), kWindowKey), static_cast<uint64_t>(window));
    const int64_t record = begin + Permutation(end - begin, key)(position - begin);
    const auto block =
        std::upper_bound(order->ends.begin(), order->ends.end(), record) - order->ends.begin();
    const int64_t place = order->blocks[block];
    return first_of(place) + record - (block == 0 ? 0 : order->ends[block - 1]);
  }

  std::vector<RecordRange> begun_by(uint64_t seed, uint64_t epoch, int64_t begin, int64_t end,
                                    const BatchLayout& layout) const override {
    std::vector<RecordRange> out;
    const int64_t first = begin * layout.global_batch(), last = end * layout.global_batch();
    if (first >= size()) return out;
    const EpochPtr order = epoch_of(seed, epoch);
    const auto windows = (static_cast<int64_t>(ends_.size()) + window_ - 1) / window_;
    int64_t window = window_of(*order, first);
    if (begin_of(*order, window) < first) ++window;
    for (; window < windows && begin_of(*order, window) < last; ++window) {
      if (!meets(layout, begin_of(*order, window), end_of(*order, window))) continue;
      const int64_t blocks = std::min<int64_t>((window + 1) * window_, order->blocks.size());
      for (int64_t i = window * window_; i < blocks; ++i) {
        const int64_t block = order->blocks[i];
        out.push_back({first_of(block), ends_[block]});
      }
    }
    return out;
  }

 private:
  // The blocks in the order of an epoch, and how many records those up to each have.
  struct Epoch {
    uint64_t seed = 0, epoch = 0;
    std::vector<int64_t> blocks, ends;
  };
  // shared: threads go on with the epoch that they began with while another is made.
  using EpochPtr = std::shared_ptr<const Epoch>;

  // Whether the rank has a row at the positions [begin, end).
  static bool meets(const BatchLayout& layout, int64_t begin, int64_t end) {
    const int64_t size = layout.global_batch();
    for (int64_t batch = begin / size; batch * size < end && batch < layout.batches(); ++batch) {
      const BatchRange mine = layout.range(batch);
      if (std::max(mine.begin, begin) < std::min(mine.end, end)) return true;
    }
    return false;
  }
  int64_t first_of(int64_t block) const { return block == 0 ? 0 : ends_[block - 1]; }
  int64_t begin_of(const Epoch& order, int64_t window) const {
    return window == 0 ? 0 : order.ends[window * window_ - 1];
  }
  int64_t end_of(const Epoch& order, int64_t window) const {
    return order.ends[std::min<int64_t>((window + 1) * window_, order.ends.size()) - 1];
  }
  int64_t window_of(const Epoch& order, int64_t position) const {
    return (std::upper_bound(order.ends.begin(), order.ends.end(), position) - order.ends.begin()) /
           window_;
  }

  EpochPtr epoch_of(uint64_t seed, uint64_t epoch) const EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    for (const EpochPtr& known : known_) {
      if (known && known->seed == seed && known->epoch == epoch) return known;
    }
    const auto made = std::make_shared<Epoch>();
    made->seed = seed;
    made->epoch = epoch;
    const auto blocks = static_cast<int64_t>(ends_.size());
    const Permutation order(blocks, mix64(mix64(seed, epoch), kBlockKey));
    int64_t end = 0;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t block = order(i);
      end += ends_[block] - first_of(block);
      made->blocks.push_back(block);
      made->ends.push_back(end);
    }
    // At the turn of an epoch two are in use.
    known_[1] = std::exchange(known_[0], made);
    return made;
  }

  std::vector<int64_t> ends_;  // of the blocks: number of the record after each one's last
  int64_t window_;             // blocks
  uint64_t fingerprint_;
  mutable Mutex mutex_;
  mutable EpochPtr known_[2] GUARDED_BY(mutex_);
};

}  // namespace

SamplerPtr shuffled_blocks(std::vector<int64_t> block_ends, int64_t window) {
  return std::make_shared<ShuffledBlocks>(std::move(block_ends), window);
}

}  // namespace headrace
