// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/streams.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler_record.h"
#include "headrace/sampling/stream_bounds.h"

namespace headrace {
namespace {

const uint64_t kDealKey = hash_name("streams"), kStreamKey = hash_name("stream blocks"),
               kStreamWindowKey = hash_name("stream window");

// The first windows of a stream in an epoch, or all.
struct StreamOrder {
  std::vector<uint32_t> blocks;       // in the order of the epoch
  std::vector<int64_t> begins = {0};  // first record of each window, and the end of the last one

  int64_t end() const { return begins.back(); }
};
// Shared: threads continue with the epoch that they started with while the next one is made.
using StreamPtr = std::shared_ptr<const StreamOrder>;
using BoundsPtr = std::shared_ptr<const StreamBounds>;

class Streams final : public Sampler {
 public:
  Streams(std::span<const int64_t> block_ends, const StreamOptions& options)
      : blocks_(block_ends),
        count_(stream_count(options.count, blocks_.blocks(), options.global_batch)),
        window_(options.window),
        batch_(options.global_batch),
        sticky_(options.sticky),
        rows_(blocks_.records(), batch_, count_) {}

  int64_t size() const override { return blocks_.records(); }
  int64_t streams() const override { return count_; }
  uint64_t fingerprint() const override {
    uint64_t out = mix64(kDealKey, blocks_.fingerprint());
    for (const int64_t part : {count_, window_, int64_t{sticky_}}) {
      out = mix64(out, static_cast<uint64_t>(part));
    }
    return out;
  }
  std::string description() const override {
    return "shuffled by streams (" + std::to_string(blocks_.blocks()) + " blocks, " +
           std::to_string(count_) + (count_ == 1 ? " stream, " : " streams, ") +
           std::to_string(window_) + " blocks in a window" +
           (sticky_ ? ")" : ", redistributed each epoch)");
  }

  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    int64_t out = 0;
    indices(seed, epoch, position, {&out, 1});
    return out;
  }

  // Neighboring rows belong to one stream.
  void indices(uint64_t seed, uint64_t epoch, int64_t begin,
               std::span<int64_t> out) const override {
    int64_t stream = -1;
    Drawn drawn;
    for (int64_t& index : out) {
      const StreamRows::Place place = rows_.at(begin++);
      const bool same = std::exchange(stream, place.stream) == place.stream;
      if (!same || place.record >= drawn.order->end()) {
        drawn = stream_of(seed, epoch, stream, place.record);
      }
      index = record_of(drawn, seed, epoch, place);
    }
  }

  std::vector<RecordRange> begun_by(uint64_t seed, uint64_t epoch, int64_t begin, int64_t end,
                                    const BatchLayout& layout) const override {
    std::vector<RecordRange> out;
    if (layout.global_batch() != batch_) return out;
    for (int64_t batch = begin; batch < std::min(end, layout.batches()); ++batch) {
      const int64_t first = batch * batch_, count = rows_.size_of(batch);
      const BatchRange mine = layout.range(batch);
      const int64_t last = std::min(mine.end - first, count) - 1;
      if (mine.begin - first > last) continue;
      for (int64_t stream = rows_.stream_of(mine.begin - first, count);
           stream <= rows_.stream_of(last, count); ++stream) {
        const int64_t from = rows_.drawn(stream, batch), to = rows_.drawn(stream, batch + 1);
        add_windows(stream_of(seed, epoch, stream, to - 1), stream, from, to, out);
      }
    }
    return out;
  }

 private:
  struct Drawn {
    BoundsPtr cuts;
    StreamPtr order;
  };
  struct Epoch {
    uint64_t seed = 0, epoch = 0;
    BoundsPtr cuts;
    std::vector<StreamPtr> streams;  // the requested ones
  };

  int64_t record_of(const Drawn& drawn, uint64_t seed, uint64_t epoch,
                    const StreamRows::Place& place) const {
    const std::vector<int64_t>& begins = drawn.order->begins;
    const auto window = std::ranges::upper_bound(begins, place.record) - begins.begin() - 1;
    const uint64_t key = key_of(seed, epoch, kStreamWindowKey, place.stream);
    const int64_t begin = begins[size_t(window)];
    const Permutation mixed(begins[size_t(window) + 1] - begin,
                            mix64(key, static_cast<uint64_t>(window)));
    int64_t record = mixed(place.record - begin);
    for (size_t i = size_t(window * window_);; ++i) {
      const int64_t block = drawn.order->blocks[i];
      const int64_t size = drawn.cuts->size_of(place.stream, block);
      if (record < size) return drawn.cuts->records(place.stream, block).begin + record;
      record -= size;
    }
  }

  // The blocks of windows that begin at the records [begin, end) of a stream.
  void add_windows(const Drawn& drawn, int64_t stream, int64_t begin, int64_t end,
                   std::vector<RecordRange>& out) const {
    const std::vector<int64_t>& begins = drawn.order->begins;
    auto window = std::ranges::lower_bound(begins, begin) - begins.begin();
    for (; window + 1 < std::ssize(begins) && begins[size_t(window)] < end; ++window) {
      const int64_t last =
          std::min<int64_t>((window + 1) * window_, std::ssize(drawn.order->blocks));
      for (int64_t i = window * window_; i < last; ++i) {
        out.push_back(drawn.cuts->records(stream, drawn.order->blocks[size_t(i)]));
      }
    }
  }

  static uint64_t key_of(uint64_t seed, uint64_t epoch, uint64_t what, int64_t stream) {
    return mix64(mix64(mix64(seed, epoch), what), static_cast<uint64_t>(stream));
  }

  // The stream with at least the window of its record `record`.
  Drawn stream_of(uint64_t seed, uint64_t epoch, int64_t stream, int64_t record) const
      EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    Epoch& known = epoch_of(seed, epoch);
    StreamPtr& order = known.streams[size_t(stream)];
    if (!order || order->end() <= record) {
      order = extended(order, *known.cuts, seed, epoch, stream, record);
    }
    return {known.cuts, order};
  }

  Epoch& epoch_of(uint64_t seed, uint64_t epoch) const REQUIRES_LOCK(mutex_) {
    for (Epoch& known : known_) {
      if (known.cuts && known.seed == seed && known.epoch == epoch) return known;
    }
    const bool same = sticky_ && known_[0].cuts && known_[0].seed == seed;
    const uint64_t key = mix64(mix64(seed, sticky_ ? 0 : epoch + 1), kDealKey);
    BoundsPtr cuts =
        same ? known_[0].cuts : std::make_shared<StreamBounds>(blocks_, rows_, count_, key);
    // Two are in use at the transition between epochs.
    known_[1] = std::exchange(
        known_[0], {seed, epoch, std::move(cuts), std::vector<StreamPtr>(size_t(count_))});
    return known_[0];
  }

  // A copy with more windows: up to that of the record, and at least twice as many as before, so
  // that an epoch copies each block about once. The first batch thus costs as little for 10^8
  // records as for 10^4.
  StreamPtr extended(const StreamPtr& known, const StreamBounds& cuts, uint64_t seed,
                     uint64_t epoch, int64_t stream, int64_t record) const {
    auto out = known ? std::make_shared<StreamOrder>(*known) : std::make_shared<StreamOrder>();
    const int64_t blocks = cuts.blocks_of(stream), twice = 2 * std::ssize(out->blocks);
    const Permutation order(std::max<int64_t>(blocks, 1), key_of(seed, epoch, kStreamKey, stream));
    int64_t i = std::ssize(out->blocks), end = out->end();
    while (i < blocks && (end <= record || i < twice)) {
      for (const int64_t last = std::min(i + window_, blocks); i < last; ++i) {
        const int64_t block = cuts.block(stream, order(i));
        out->blocks.push_back(static_cast<uint32_t>(block));
        end += cuts.size_of(stream, block);
      }
      out->begins.push_back(end);
    }
    return out;
  }

  const BlockTable blocks_;
  const int64_t count_, window_, batch_;
  const bool sticky_;
  const StreamRows rows_;
  mutable Mutex mutex_;
  mutable Epoch known_[2] GUARDED_BY(mutex_);
};

const SamplerRecord kStreams{
    .name = "streams",
    .doc =
        "Each record once, for remote data and many machines: ``shuffle=\"streams\"``, with its "
        "parameters.\n\n"
        "Blocks of neighboring records (a few MiB each) are distributed over ``count`` streams. "
        "Each stream always fills the same rows of the global batch, from ``window`` blocks at a "
        "time. If the number of ranks divides ``count``, each rank takes whole streams, so "
        "together they read each block about once per epoch. The order does not depend on the "
        "number of ranks.",
    .example = "hr.sampling.streams(count=128)",
    .per_record = PerRecord::kNothing,
    .given = {},
    .params =
        {{.name = "count",
          .type = ParamType::kInt,
          .doc = "Number of streams; halved until there are no more streams than blocks, and no "
                 "more than records in a global batch. None: the smallest of 64, 128 and 256 that "
                 "is at least twice the number of machines; the loader's state stores it, so that "
                 "a run can resume on a different number of machines.",
          .minimum = 1,
          .maximum = 65536},
         {.name = "window",
          .type = ParamType::kInt,
          .doc = "Number of blocks per stream whose records are mixed. More blocks mix better, "
                 "but take more memory or disk space.",
          .fallback = int64_t{8},
          .minimum = 1,
          .maximum = std::numeric_limits<int32_t>::max()},
         {.name = "sticky",
          .type = ParamType::kBool,
          .doc = "Whether a stream has the same blocks in every epoch, so that a machine can reuse "
                 "cached data in the next one. False: redistribute them in every epoch.",
          .fallback = true}},
    .make = [](SamplerData data, const Arguments& arguments) -> SamplerPtr {
      int64_t count = data.streams > 0 ? data.streams : streams_for(data.machines);
      if (!arguments.is_none("count")) count = arguments.integer("count");
      return shuffled_streams(data.block_ends, {.count = count,
                                                .window = arguments.integer("window"),
                                                .sticky = arguments.flag("sticky"),
                                                .global_batch = data.global_batch});
    }};
const Register<SamplerRecord> registered_streams(kStreams);

}  // namespace

int64_t streams_for(int64_t machines) { return machines <= 32 ? 64 : machines <= 64 ? 128 : 256; }

int64_t stream_count(int64_t count, int64_t blocks, int64_t global_batch) {
  while (count > 1 && count > std::min(blocks, global_batch)) count /= 2;
  return count;
}

SamplerPtr shuffled_streams(std::span<const int64_t> block_ends, const StreamOptions& options) {
  return std::make_shared<Streams>(block_ends, options);
}

}  // namespace headrace
