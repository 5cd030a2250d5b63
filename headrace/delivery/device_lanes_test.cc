// SPDX-License-Identifier: Apache-2.0
// Batches whose rows a device finishes overlap there, as far as lanes and memory allow. If the
// device lacks memory, detects damage or fails, the consumer's stream reads the correct bytes or
// gets an error.
#include "headrace/delivery/device_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "headrace/base/mutex.h"
#include "headrace/delivery/prefetcher.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kRows = 12;
constexpr size_t kRowBytes = 1000;
// A row's bytes, the number that is added to each, and the same amount of intermediate memory.
constexpr size_t kRowRoom = 2 * kRowBytes + sizeof(int64_t) + 3 * UnfinishedRows::kAlignment;

// What is known about rows across batches: which ones the device finds damaged, and whether it
// still finishes any.
class Knowledge {
 public:
  std::set<std::pair<int64_t, int64_t>> damaged = {};  // batch and row
  void find(int64_t batch, int64_t row) EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    found_.insert({batch, row});
  }
  // The damaged rows of a batch that the host has finished.
  std::set<int64_t> found(int64_t batch) const EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    std::set<int64_t> out;
    for (int64_t row = 0; row < kRows; ++row) {
      if (off_ || found_.contains({batch, row})) out.insert(row);
    }
    return out;
  }
  std::set<std::pair<int64_t, int64_t>> all_found() const EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    return found_;
  }
  void turn_off() EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    off_ = true;
  }
  bool is_off() const EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    return off_;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::pair<int64_t, int64_t>> found_ GUARDED_BY(mutex_);
  bool off_ GUARDED_BY(mutex_) = false;
};

// Rows to whose bytes the device adds one. Rows that are known to be damaged are already finished,
// and need no intermediate memory.
class Raised final : public UnfinishedRows {
 public:
  Raised(int64_t batch, int64_t first, int64_t rows, Knowledge& knowledge,
         std::set<int64_t> finished)
      : batch_(batch),
        first_(first),
        rows_(rows),
        knowledge_(knowledge),
        finished_(std::move(finished)),
        off_(int64_t(finished_.size()) == kRows) {}

  int64_t rows() const override { return rows_; }
  size_t slot_end() const override { return size_t(first_ + rows_) * kRowBytes; }
  size_t room_of(int64_t first, int64_t last) const override {
    return size_t(last - first) * (off_ ? kRowBytes : 2 * kRowBytes);
  }
  bool may_begin_at(int64_t row) const override { return (first_ + row) % 2 == 0; }
  std::shared_ptr<UnfinishedRows> part(int64_t first, int64_t last) const override {
    return std::make_shared<Raised>(batch_, first_ + first, last - first, knowledge_, finished_);
  }
  bool exceeds_memory() const override {
    knowledge_.turn_off();
    return !off_;
  }
  void put_together() override {
    for (int64_t row = 0; row < rows_; ++row) {
      added_.push_back(finished_.contains(first_ + row) ? 0 : 1);
    }
  }
  std::vector<SlotPiece> slot_pieces() const override {
    return {{size_t(first_) * kRowBytes, slot_bytes()}};
  }
  size_t slot_bytes() const override { return size_t(rows_) * kRowBytes; }
  std::span<const uint8_t> parameters() const override { return added_; }
  size_t scratch_bytes() const override { return off_ ? 0 : slot_bytes(); }
  size_t transfer_bytes() const override { return slot_bytes(); }
  size_t verdict_bytes() const override { return off_ ? 0 : size_t(rows_); }
  void queue(Stream& stream, const DevicePointers& there, void* finished) const override {
    auto* const to = static_cast<uint8_t*>(finished);
    stream.run([this, there, to] {
      for (int64_t row = 0; row < rows_; ++row) {
        const bool damaged = there.parameters[row] && is_damaged(row);
        for (size_t i = 0; i < kRowBytes; ++i) {
          const size_t at = size_t(row) * kRowBytes + i;
          const auto raised = uint8_t(there.slot[at] + (damaged ? 7 : there.parameters[row]));
          if (!off_) there.scratch[at] = raised;  // as a kernel would leave it for the next
          to[at] = raised;
        }
        if (!off_) there.verdict[row] = damaged;
      }
    });
  }
  bool accepts(const uint8_t* verdict) const override {
    bool all = true;
    for (int64_t row = 0; row < rows_ && !off_; ++row) {
      if (!verdict[row]) continue;
      all = false;
      knowledge_.find(batch_, first_ + row);
    }
    return all;
  }

 private:
  bool is_damaged(int64_t row) const { return knowledge_.damaged.contains({batch_, first_ + row}); }

  const int64_t batch_, first_, rows_;
  Knowledge& knowledge_;
  const std::set<int64_t> finished_;
  const bool off_;
  Bytes added_;
};

uint8_t byte_of(int64_t batch, int64_t row, size_t i) {
  return uint8_t(batch * 31 + row * 7 + int64_t(i));
}

// Batches of rows and a small tensor; the bytes of already finished rows are one higher.
class Feed final : public BatchFeed {
 public:
  Feed(int64_t batches, Knowledge& knowledge, int64_t first = 0, int slots = 1 << 20)
      : batches_(batches), next_(first), knowledge_(knowledge), slots_(slots) {}
  std::optional<HostBatch> next(const std::function<bool()>&) override {
    if (next_ == batches_) return std::nullopt;
    const int64_t batch = next_++;
    const std::set<int64_t> finished = knowledge_.found(batch);
    EXPECT_LT(*held_, slots_) << "no slot is left to fill";
    const std::shared_ptr<Bytes> bytes(new Bytes(size_t(kRows) * kRowBytes),
                                       [held = held_](const Bytes* slot) {
                                         delete slot;
                                         --*held;
                                       });
    ++*held_;
    for (int64_t row = 0; row < kRows; ++row) {
      const bool raised = finished.contains(row);
      for (size_t i = 0; i < kRowBytes; ++i) {
        (*bytes)[size_t(row) * kRowBytes + i] = uint8_t(byte_of(batch, row, i) + raised);
      }
    }
    auto label = std::make_shared<Bytes>(8, uint8_t(batch));
    HostBatch out;
    void* const data = bytes->data();
    void* const labels = label->data();
    out.tensors.push_back(
        {.view = {data, DType::kUInt8, {kRows, int64_t(kRowBytes)}, {}},
         .lease = bytes,
         .pinned = true,
         .unfinished = std::make_shared<Raised>(batch, 0, kRows, knowledge_, finished)});
    out.tensors.push_back({.view = {labels, DType::kUInt8, {8}, {}}, .lease = std::move(label)});
    out.rest = std::make_shared<int64_t>(batch);
    out.name = "batch " + std::to_string(batch);
    out.slots_left = slots_ - *held_;
    return out;
  }
  void again(const std::shared_ptr<void>& rest) override {
    next_ = *static_cast<const int64_t*>(rest.get());
  }

 private:
  const int64_t batches_;
  int64_t next_;
  Knowledge& knowledge_;
  const int slots_;
  // shared: slots may come back when the feed is gone
  const std::shared_ptr<std::atomic<int>> held_ = std::make_shared<std::atomic<int>>(0);
};

struct Delivery {
  std::shared_ptr<SimulatedDevice> device;
  PrefetchOptions options = {};
  int slots = 1 << 20;  // of the feed
  Knowledge knowledge = {};
  std::vector<std::string> said = {};
  std::unique_ptr<Prefetcher> prefetcher = {};
  int64_t taken = 0, wrong = 0;

  void start(int64_t batches) {
    options.warn = [this](const std::string& text) { said.push_back(text); };
    if (!prefetcher) prefetcher = std::make_unique<Prefetcher>(device, options);
    prefetcher->start(std::make_unique<Feed>(batches, knowledge, taken, slots));
  }
  // Reads them on a separate stream, when that stream reaches the read.
  void take(int64_t most) {
    const StreamPtr stream = device->foreign_stream(0);
    for (int64_t n = 0; n < most; ++n) {
      const std::optional<DeviceBatch> batch = prefetcher->next();
      if (!batch) break;
      ASSERT_EQ(*static_cast<int64_t*>(batch->rest.get()), taken);
      for (const DeviceTensor& tensor : batch->tensors) tensor.lease->use_on(0);
      stream->run(
          [this, number = taken, rows = batch->tensors[0].view.data,
           labels = batch->tensors[1].view.data] {
            const auto* const bytes = static_cast<const uint8_t*>(rows);
            bool right = *static_cast<const uint8_t*>(labels) == uint8_t(number);
            for (int64_t row = 0; row < kRows; ++row) {
              for (size_t i = 0; i < kRowBytes; ++i) {
                right &= bytes[size_t(row) * kRowBytes + i] == uint8_t(byte_of(number, row, i) + 1);
              }
            }
            wrong += !right;
          },
          1e-6);
      ++taken;
    }
    stream->synchronize();
  }
  void expect_all(int64_t batches) {
    start(batches);
    ASSERT_NO_FATAL_FAILURE(take(batches + 1));
    EXPECT_EQ(taken, batches);
    EXPECT_EQ(wrong, 0);
  }
};

std::shared_ptr<SimulatedDevice> device(uint64_t seed, size_t memory = 0) {
  return std::make_shared<SimulatedDevice>(seed, SimulatedCosts{.run_seconds = 1}, memory);
}

// Executed work by stream, without the consumer's.
std::map<int, std::vector<SimulatedWork>> runs(const SimulatedDevice& device) {
  std::map<int, std::vector<SimulatedWork>> out;
  for (const SimulatedWork& work : device.timeline()) {
    if (work.kind == SimulatedWork::Kind::kRun && work.stream != 0) {
      out[work.stream].push_back(work);
    }
  }
  return out;
}

// Some of a device's draws end a part before the next is queued.
TEST(DeviceLanes, PartsOfALargeBatchAreFinishedInParallel) {
  int64_t all_at_once = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Delivery run{.device = device(seed)};
    run.options = {.lanes = 4, .scratch_limit = 4 * kRowRoom};
    run.expect_all(1);
    const auto by_lane = runs(*run.device);
    size_t parts = 0, first = 0;
    for (const auto& [stream, works] : by_lane) {
      for (const SimulatedWork& work : works) {
        ++parts;
        first += work.begin == 0 && work.end == 1;
      }
    }
    EXPECT_EQ(parts, 3u);  // of four rows each
    EXPECT_EQ(first, by_lane.size());
    all_at_once += first == parts;
    const PrefetchStats stats = run.prefetcher->stats();
    EXPECT_EQ(stats.parts, 3);
    EXPECT_EQ(stats.lanes, int64_t(by_lane.size()));
    EXPECT_EQ(stats.lane_bytes, 4 * kRowRoom);
  }
  EXPECT_GT(all_at_once, 2);
}

// How far batches overlap depends on when the consumer takes them; the parts of one batch always
// overlap.
TEST(DeviceLanes, TwoBatchesNeverShareALane) {
  for (const int lanes : {1, 2, 4}) {
    Delivery run{.device = device(2)};
    run.options = {.depth = 2, .lanes = lanes, .scratch_limit = size_t{1} << 20};
    run.expect_all(24);
    for (const auto& [stream, works] : runs(*run.device)) {
      for (size_t i = 1; i < works.size(); ++i) {
        EXPECT_GE(works[i].begin, works[i - 1].end);
      }
    }
    EXPECT_LE(runs(*run.device).size(), size_t(lanes));
  }
}

TEST(DeviceLanes, AnyNumberOfLanesAndPartsGivesTheSameBatches) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Delivery run{.device = device(seed)};
    run.options = {.depth = 1 + int(seed % 3),
                   .lanes = 1 << seed % 3,
                   .scratch_limit = kRowRoom * (seed % 5 == 0 ? 1 : seed % 14)};
    run.expect_all(8);
  }
}

TEST(DeviceLanes, TheFeedKeepsASlotToFill) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Delivery run{.device = device(seed), .slots = 2 + int(seed % 3)};
    run.options = {.depth = 1 + int(seed % 4), .scratch_limit = 4 * kRowRoom};
    run.expect_all(12);
  }
}

TEST(DeviceLanes, DamagedPartsAreRemadeWhileOthersAreLate) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Delivery run{.device = device(seed)};
    for (uint64_t n = 0; n < 3; ++n) {
      run.knowledge.damaged.insert({int64_t(seed + n * 5) % 8, int64_t(seed * 7 + n) % kRows});
    }
    run.options = {.depth = 1 + int(seed % 3), .scratch_limit = kRowRoom * (2 + seed % 6)};
    run.expect_all(8);
    EXPECT_EQ(run.knowledge.all_found(), run.knowledge.damaged);
  }
}

TEST(DeviceLanes, ARunAbandonedWithPartsInFlightResumes) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Delivery run{.device = device(seed)};
    run.knowledge.damaged = {{3, 5}, {4, 0}};
    run.options = {.depth = 1 + int(seed % 3), .scratch_limit = 3 * kRowRoom};
    run.start(8);
    ASSERT_NO_FATAL_FAILURE(run.take(int64_t(seed) % 7));
    run.prefetcher->stop();
    run.expect_all(8);
    run.prefetcher = nullptr;
    EXPECT_EQ(run.device->allocated_bytes(), 0u);
  }
}

TEST(DeviceLanes, AfterAFailedAllocationLanesAreFewerOrSmaller) {
  for (int64_t n = 1; n <= 12; ++n) {
    Delivery run{.device = device(uint64_t(n))};
    run.options = {.scratch_limit = 4 * kRowRoom};
    run.device->refuse_allocation(n);
    try {
      run.expect_all(5);
      EXPECT_TRUE(run.said.empty());
    } catch (const Exception& exception) {  // the first slabs: there is nothing to give back
      EXPECT_EQ(exception.error().code->id, "HR0880");
      EXPECT_LE(n, 2);
    }
  }
}

// Memory for the slab of one batch, plus this much.
TEST(DeviceLanes, ADeviceWithLittleMemoryFinishesSmallerPartsAndThenTheCpuTakesOver) {
  constexpr size_t kSlab = 16384;  // an eighth more than it takes, in pages
  const auto run_with = [](size_t memory) {
    SCOPED_TRACE(memory);
    Delivery run{.device = device(7, kSlab + memory)};
    run.options = {.depth = 1};
    run.expect_all(8);
    return std::pair(run.prefetcher->stats(), run.said);
  };
  const auto [large, nothing] = run_with(kRows * 5 * kRowRoom);
  EXPECT_EQ(large.parts, 8);
  EXPECT_GE(large.lanes, 1);  // another where the first is still at work
  EXPECT_TRUE(nothing.empty());
  const auto [small, as_well] = run_with(5 * kRowRoom);
  EXPECT_GE(small.parts, 24);
  EXPECT_LE(small.lane_bytes, 5 * kRowRoom);
  EXPECT_TRUE(as_well.empty()) << as_well[0];
  const auto [none, said] = run_with(3 * kRowBytes);  // two rows stay together
  EXPECT_LE(none.lane_bytes, 3 * kRowBytes);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("the CPU decodes from now on"), std::string::npos);
}

TEST(DeviceLanes, LosingTheDeviceAtAnyCallIsAnErrorWithoutLeaks) {
  int64_t lost = 0;
  for (int64_t n = 1; n <= 150; ++n) {
    Delivery run{.device = device(uint64_t(n))};
    run.knowledge.damaged = {{1, 5}};
    run.options = {.scratch_limit = 4 * kRowRoom};
    run.device->fail_at(n);
    try {
      run.expect_all(3);
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().code->id, "HR0883");
      ++lost;
    }
    EXPECT_EQ(run.wrong, 0);
    run.prefetcher = nullptr;
    EXPECT_EQ(run.device->allocated_bytes(), 0u);
  }
  EXPECT_GT(lost, 50);
}

TEST(DeviceLanes, TheirMemoryIsAFractionOfFreeMemory) {
  struct Case {
    size_t free, limit;
  };
  constexpr size_t kMiB = size_t{1} << 20;
  for (const Case& one :
       {Case{70 << 10, 512}, Case{6 << 10, 96}, Case{5 << 9, 80}, Case{1 << 10, 64}}) {
    DeviceLanes lanes(device(0, one.free * kMiB), {});
    EXPECT_EQ(lanes.limit(), one.limit * kMiB) << one.free;
  }
}

}  // namespace
}  // namespace headrace
