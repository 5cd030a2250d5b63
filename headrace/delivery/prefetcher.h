// SPDX-License-Identifier: Apache-2.0
// Batches of host memory, copied to a device ahead of the consumer.
//
//   feed (a thread) --host batch--> staging --copy stream--> slab --event--> consumer's stream
//
// Unfinished rows are copied to scratch memory, from which kernels compute the slab's rows, on
// separate streams (device_finisher.h); the event then follows the kernels.
//
// One thread takes batches from a feed, stages those that are not in pinned memory (large ones with
// the help of other threads, staging_copier.h), and queues their copies; `depth` batches are ready
// or in progress at any time, and up to kWorkedOn more while the device finishes their rows. The
// consumer gets a batch as soon as its copy is queued: the stream that uses it waits for the copy,
// the host does not. See device_ring.h for how memory is reused. An exception of the feed is
// delivered after the batches before it, and ends the run. Several prefetchers may get parts of the
// same batches; next_of_all() returns all parts of one batch together.
#pragma once

#include <climits>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/counter.h"
#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/base/tensor.h"
#include "headrace/delivery/device_finisher.h"
#include "headrace/delivery/device_ring.h"
#include "headrace/delivery/staging.h"
#include "headrace/delivery/staging_copier.h"

namespace headrace {

// A tensor of a batch on the host; dense, with its axes in any order in memory.
struct HostTensor {
  TensorView view;
  std::shared_ptr<void> lease;  // shared: held until the copy is done
  bool pinned = false;          // copied directly
  // If set, `view` describes the finished rows. shared: held until they are finished
  std::shared_ptr<const UnfinishedRows> unfinished = {};
};

struct HostBatch {
  std::vector<HostTensor> tensors;
  std::shared_ptr<void> rest;  // data of the feed, passed along. shared: the feed knows its type
  std::string name = {};       // "batch 7 of epoch 0", for errors
  int slots_left = INT_MAX;    // the feed needs one to continue, not counting copies in progress
};

// Where batches come from; called only by the prefetcher's thread.
class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  // Nothing at the end. May throw. `stopping` returns true once the result is no longer needed.
  virtual std::optional<HostBatch> next(const std::function<bool()>& stopping) = 0;
  // A batch returned by next() has unfinished rows that turned out to be wrong
  // (UnfinishedRows::accepts), in this part or in another. next() must return that batch again; it
  // is identified by its HostBatch::rest, of any part. The batches after it have been dropped. May
  // throw.
  virtual void again(const std::shared_ptr<void>& rest);
};

struct DeviceTensor {
  TensorView view;
  std::shared_ptr<DeviceLease> lease;  // shared: by the tensors of a batch
};

struct DeviceBatch {
  std::vector<DeviceTensor> tensors;
  std::shared_ptr<void> rest;
};

struct PrefetchOptions {
  int depth = 2;                 // batches that are ready or in progress
  double patience_seconds = 60;  // until `warn` reports what next() waits for; 0: never
  size_t staging_limit = 0;      // bytes of pinned memory for unpinned batches; 0: no limit
  std::function<void(const std::string&)> warn = {};
  // Streams for unfinished rows, and the bytes of device memory of each; a batch that needs more is
  // finished in parts. A single record that needs more gets it. 0: depends on the free memory
  // (device_lanes.h).
  int lanes = 0;
  size_t scratch_limit = 0;
};

// prefetch_counters() documents each of these.
struct PrefetchStats {
  int64_t batches = 0, beyond = 0, parts = 0;
  uint64_t bytes = 0, delivered_bytes = 0;
  double wait_seconds = 0, feed_seconds = 0, prepare_seconds = 0, staging_seconds = 0;
  size_t device_bytes = 0, pinned_bytes = 0, scratch_bytes = 0, lane_bytes = 0;
  int64_t lanes = 0;
};
std::span<const Counter<PrefetchStats>> prefetch_counters();

class Prefetcher {
 public:
  Prefetcher(DevicePtr device, PrefetchOptions options);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // All members may be called from any thread, start() by one at a time. `interrupted`, called
  // every 50 ms during a wait, may throw; then the call can be repeated.

  // Begins a run; ends the previous one.
  void start(std::unique_ptr<BatchFeed> feed, const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);
  // Ends the run. Waits for the feed's current call.
  void stop(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);
  // The next batch, or nothing after the last one, or if the run is stopped in the meantime. After
  // that, or after an error, the run is over.
  std::optional<DeviceBatch> next(const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);

  // The steps of next(), for several prefetchers that get parts of the same batches. Only one
  // thread may take batches from these.

  // The result of look(): a batch for take(); an incomplete one; the end, or that the run was
  // stopped.
  struct Front {
    enum class Kind { kThere, kNotWhole, kNone };
    Kind kind = Kind::kNone;
    std::shared_ptr<void> rest = {};  // of the incomplete batch
  };
  // Waits for the next batch, and for the device's verdict on it. Throws like next().
  Front look(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);
  // The batch that look() found; nothing if it has been taken or dropped since.
  std::optional<DeviceBatch> take() EXCLUDES_LOCK(mutex_);
  // Goes back to the batch that any part with this `rest` belongs to: next() returns it again.
  void go_back_to(const std::shared_ptr<void>& rest) EXCLUDES_LOCK(mutex_);

  // Number of results that next() would return immediately, including the end and an error.
  int ready() const EXCLUDES_LOCK(mutex_);
  PrefetchStats stats() const EXCLUDES_LOCK(mutex_);

 private:
  enum class Stage { kIdle, kFeed, kStaging, kRoom };
  // Up to this many batches beyond `depth` may be queued, one for each that the device is
  // finishing.
  static constexpr int kWorkedOn = 2;
  // A copy in progress, and the memory that it reads.
  struct Copying {
    std::string batch;  // its name
    bool is_worked_on = false;
    EventPtr done = {};
    std::vector<std::shared_ptr<void>> sources = {};
  };
  // The device's report on a batch's unfinished rows.
  struct Verdict {
    std::shared_ptr<const UnfinishedRows> rows;  // shared: with the copies in progress
    std::shared_ptr<uint8_t> bytes;              // shared: likewise
  };
  struct Ready {
    std::optional<DeviceBatch> batch;    // nullopt at the end
    std::vector<Verdict> verdicts = {};  // checked before the consumer gets the batch
    EventPtr done = {};                  // after the verdicts have been copied to the host
    bool not_whole = false;              // according to the verdicts
    std::string name = {};
    uint64_t number = 0;  // counts all batches that became ready
  };

  void feed_all() EXCLUDES_LOCK(mutex_);
  void feed_run() EXCLUDES_LOCK(mutex_);
  Ready deliver(HostBatch batch);
  struct Staged;
  struct Slabs;
  bool divide(const HostBatch& batch, Staged& stage);
  void copy(HostTensor& tensor, void* to, Staged& stage, Copying& copying);
  void finish(HostTensor& tensor, void* to, const DeviceLease& lease, Staged& stage,
              Copying& copying);
  EventPtr after(const Staged& stage, const Slabs& slabs);
  EventPtr after_all();
  Slab slab_of(DeviceRing& ring, size_t bytes, bool beyond);
  std::shared_ptr<DeviceLease> lease_of(const std::shared_ptr<DeviceRing>& ring, size_t bytes);
  bool wait_for_place() EXCLUDES_LOCK(mutex_);
  bool is_unwanted() const EXCLUDES_LOCK(mutex_);
  void enter(Stage stage) EXCLUDES_LOCK(mutex_);
  void push(Ready ready) EXCLUDES_LOCK(mutex_);
  void drop_copies();
  bool has_slot() const;
  void wait_for_copy(Copying& copying) noexcept;
  std::string wait_reason() const REQUIRES_LOCK(mutex_);
  Front inspect_front() REQUIRES_LOCK(mutex_);
  bool awaits_verdict() const REQUIRES_LOCK(mutex_);
  bool read_verdict() EXCLUDES_LOCK(mutex_);
  bool is_over() EXCLUDES_LOCK(mutex_);
  void warn_once(const std::string& what) EXCLUDES_LOCK(mutex_);
  // The error, with the batch in which it occurred.
  Exception named(const Exception& exception, const std::string& batch) const;

  const DevicePtr device_;
  const PrefetchOptions options_;
  const StreamPtr copies_;  // of tensors that are copied unchanged
  const StreamPtr joins_;   // only waits: its events come after a batch's copies and work
  // Small tensors have their own ring, so that keeping labels does not keep images.
  const std::shared_ptr<DeviceRing> large_, small_;
  StagingRing staging_;
  StagingCopier copier_;
  PinnedPieces pieces_;
  DeviceFinisher finisher_;
  std::unique_ptr<BatchFeed> feed_;  // used by the thread, while it runs
  // Used by the thread: copies in progress; the last batch's slots_left, and the number of copies
  // in progress when that batch was received.
  std::deque<Copying> copying_;
  int slots_left_ = INT_MAX;
  size_t copying_then_ = 0;

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Ready> ready_ GUARDED_BY(mutex_);
  std::thread thread_ GUARDED_BY(mutex_);
  bool feeding_ GUARDED_BY(mutex_) = false;        // the thread is working
  std::exception_ptr failure_ GUARDED_BY(mutex_);  // delivered after the ready batches
  bool stopping_ GUARDED_BY(mutex_) = false;
  // The batch to be made next, Note [Batches that are made again].
  std::optional<std::shared_ptr<void>> again_ GUARDED_BY(mutex_);
  uint64_t numbered_ GUARDED_BY(mutex_) = 0;
  bool running_ GUARDED_BY(mutex_) = false;
  bool consumer_waits_ GUARDED_BY(mutex_) = false;
  Stage stage_ GUARDED_BY(mutex_) = Stage::kIdle;
  std::set<std::string> warned_ GUARDED_BY(mutex_);
  std::vector<std::string> messages_ GUARDED_BY(mutex_);  // for `warn`, on the consumer's thread
  PrefetchStats stats_ GUARDED_BY(mutex_);
};

// All parts of the next batch, from prefetchers that share batches; otherwise like
// Prefetcher::next().
std::optional<std::vector<DeviceBatch>> next_of_all(std::span<Prefetcher* const> prefetchers,
                                                    const std::function<void()>& interrupted = {});

}  // namespace headrace
