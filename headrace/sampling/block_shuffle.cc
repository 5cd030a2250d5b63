// SPDX-License-Identifier: Apache-2.0
// Shuffling for disks and networks with expensive random reads: blocks of neighboring records are
// permuted, and records are permuted inside a window of some blocks. Only the blocks of the window
// are read at any time.
#include <algorithm>
#include <array>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/block_sequence.h"
#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

const uint64_t kBlockKey = hash_name("blocks"), kWindowKey = hash_name("window");

// Note [Blocks of a billion records]: there are then millions of blocks, so only their sizes are
// stored. An epoch stores where each window ends; the blocks of a window are found by the
// permutation when the window is first used.
class ShuffledBlocks final : public Sampler {
 public:
  ShuffledBlocks(std::span<const int64_t> ends, int64_t window)
      : blocks_(ends),
        window_(window),
        windows_((blocks_.blocks() + window - 1) / window),
        fingerprint_(mix64(hash_name("shuffled blocks"), static_cast<uint64_t>(window))) {
    int64_t before = 0;
    for (const int64_t end : ends) {
      if (std::exchange(before, end) == end) continue;  // an empty block
      fingerprint_ = mix64(fingerprint_, static_cast<uint64_t>(end));
    }
  }

  int64_t size() const override { return blocks_.records(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return "shuffled by blocks (" + std::to_string(blocks_.blocks()) + " blocks, " +
           std::to_string(window_) + " in a window)";
  }

  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    const EpochPtr order = epoch_of(seed, epoch);
    const WindowPtr window = window_at(order, position);
    const int64_t place = window->mixed(position - window->begin);
    const auto block = std::ranges::upper_bound(window->ends, place) - window->ends.begin();
    return window->blocks[size_t(block)].end - (window->ends[size_t(block)] - place);
  }

  std::vector<RecordRange> begun_by(uint64_t seed, uint64_t epoch, int64_t begin, int64_t end,
                                    const BatchLayout& layout) const override {
    std::vector<RecordRange> out;
    const int64_t first = begin * layout.global_batch(), last = end * layout.global_batch();
    if (first >= size()) return out;
    const EpochPtr order = epoch_of(seed, epoch);
    int64_t window = window_of(*order, first);
    if (begin_of(*order, window) < first) ++window;
    for (; window < windows_ && begin_of(*order, window) < last; ++window) {
      if (!meets(layout, begin_of(*order, window), order->ends[size_t(window)])) continue;
      for (int64_t i = window * window_; i < end_of(window); ++i) {
        out.push_back(blocks_[order->blocks(i)]);
      }
    }
    return out;
  }

 private:
  struct Epoch {
    uint64_t seed, epoch;
    Permutation blocks;         // of the blocks
    std::vector<int64_t> ends;  // positions up to each window's end
  };
  // Shared: threads continue with the epoch that they started with while another is made.
  using EpochPtr = std::shared_ptr<const Epoch>;

  struct Window {
    EpochPtr epoch;
    int64_t number, begin;  // its first position
    Permutation mixed;      // of its records
    std::vector<RecordRange> blocks;
    std::vector<int64_t> ends;  // records of the window up to each block's end
  };
  // Shared, like epochs.
  using WindowPtr = std::shared_ptr<const Window>;

  // Whether the rank has a row among the positions [begin, end).
  static bool meets(const BatchLayout& layout, int64_t begin, int64_t end) {
    const int64_t size = layout.global_batch();
    for (int64_t batch = begin / size; batch * size < end && batch < layout.batches(); ++batch) {
      const BatchRange mine = layout.range(batch);
      if (std::max(mine.begin, begin) < std::min(mine.end, end)) return true;
    }
    return false;
  }
  static int64_t begin_of(const Epoch& order, int64_t window) {
    return window == 0 ? 0 : order.ends[size_t(window - 1)];
  }
  static int64_t window_of(const Epoch& order, int64_t position) {
    return std::ranges::upper_bound(order.ends, position) - order.ends.begin();
  }
  // The index after a window's last block.
  int64_t end_of(int64_t window) const {
    return std::min((window + 1) * window_, blocks_.blocks());
  }

  EpochPtr epoch_of(uint64_t seed, uint64_t epoch) const EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    for (const EpochPtr& known : known_) {
      if (known && known->seed == seed && known->epoch == epoch) return known;
    }
    const Permutation order(std::max<int64_t>(1, blocks_.blocks()),
                            mix64(mix64(seed, epoch), kBlockKey));
    const auto made = std::make_shared<Epoch>(Epoch{seed, epoch, order, {}});
    made->ends.reserve(size_t(windows_));
    int64_t end = 0;
    for (int64_t window = 0; window < windows_; ++window) {
      end += records_of(order, window);
      made->ends.push_back(end);
    }
    // Two are in use at the transition between epochs.
    known_[1] = std::exchange(known_[0], made);
    return made;
  }

  int64_t records_of(const Permutation& order, int64_t window) const {
    int64_t records = 0;
    // Sizes are scattered over the table: prefetch them all, then add.
    std::array<int64_t, 16> some;
    for (int64_t i = window * window_; i < end_of(window);) {
      const int64_t count = std::min<int64_t>(some.size(), end_of(window) - i);
      for (int64_t k = 0; k < count; ++k) blocks_.prefetch(some[size_t(k)] = order(i + k));
      for (int64_t k = 0; k < count; ++k) records += blocks_.size_of(some[size_t(k)]);
      i += count;
    }
    return records;
  }

  WindowPtr window_at(const EpochPtr& order, int64_t position) const EXCLUDES_LOCK(mutex_) {
    const int64_t number = window_of(*order, position);
    {
      MutexLock lock(mutex_);
      for (const WindowPtr& drawn : drawn_) {
        if (drawn && drawn->number == number && drawn->epoch == order) return drawn;
      }
    }
    const int64_t begin = begin_of(*order, number), end = order->ends[size_t(number)];
    const uint64_t key =
        mix64(mix64(mix64(order->seed, order->epoch), kWindowKey), static_cast<uint64_t>(number));
    const auto made = std::make_shared<Window>(
        Window{order, number, begin, Permutation(end - begin, key), {}, {}});
    int64_t records = 0;
    for (int64_t i = number * window_; i < end_of(number); ++i) {
      made->blocks.push_back(blocks_[order->blocks(i)]);
      made->ends.push_back(records += made->blocks.back().end - made->blocks.back().begin);
    }
    MutexLock lock(mutex_);
    drawn_[next_++ % drawn_.size()] = made;
    return made;
  }

  const BlockTable blocks_;
  const int64_t window_;   // blocks
  const int64_t windows_;  // of an epoch
  uint64_t fingerprint_;
  mutable Mutex mutex_;
  mutable EpochPtr known_[2] GUARDED_BY(mutex_);
  mutable std::array<WindowPtr, 8> drawn_ GUARDED_BY(mutex_);  // recently used
  mutable size_t next_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

SamplerPtr shuffled_blocks(std::vector<int64_t> block_ends, int64_t window) {
  return std::make_shared<ShuffledBlocks>(block_ends, window);
}

}  // namespace headrace
