// SPDX-License-Identifier: Apache-2.0
// Batches of host memory, copied to a device ahead of the consumer.
//
//   feed (own thread) --host batch--> staging --copy stream--> slab --event--> consumer's stream
//
// Rows that come unfinished pass through scratch memory, where kernels make the slab's rows of
// them, on separate streams (device_finisher.h); the event is then after all of these.
//
// One thread takes batches from a feed, stages those that are not in pinned memory (large ones with
// the help of others, staging_copier.h), and queues their copies; `depth` batches are ready or
// under way at any time, and up to kWorkedOn more while the device finishes rows of them. The
// consumer gets a batch as soon as its copy is queued: the stream that uses it waits for the copy,
// the host does not. See device_ring.h for how memory is used again. Exceptions of the feed arrive
// at their place in the order, and end the run. Several prefetchers may get parts of the same
// batches; next_of_all() hands over all parts of one at a time.
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

// Its elements are dense, in any order of axes.
struct HostTensor {
  TensorView view;
  std::shared_ptr<void> lease;  // shared: held until the copy is done
  bool pinned = false;          // copied from where it lies
  // Then `view` is what will be made of the rows. shared: held until that is done
  std::shared_ptr<const UnfinishedRows> unfinished = {};
};

struct HostBatch {
  std::vector<HostTensor> tensors;
  std::shared_ptr<void> rest;  // whatever goes with it, untouched. shared: its type is the feed's
  std::string name = {};       // "batch 7 of epoch 0", for errors
  int slots_left = INT_MAX;    // the feed needs one to go on, besides those of copies under way
};

// Where batches come from; asked by the prefetcher's thread alone.
class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  // Nothing at the end. May throw. `stopping` turns true when nobody waits for it any more.
  virtual std::optional<HostBatch> next(const std::function<bool()>& stopping) = 0;
  // A batch that it gave has unfinished rows that turned out to be wrong (UnfinishedRows::accepts),
  // here or in another part of it. The next one is to be this again, by the HostBatch::rest that it
  // had, here or there; those that came after it are dropped. May throw.
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
  int depth = 2;                 // batches that are ready or under way
  double patience_seconds = 60;  // until `warn` hears what next() waits for; 0: never
  size_t staging_limit = 0;      // bytes of pinned memory for batches that are not; 0: any
  std::function<void(const std::string&)> warn = {};
  // Streams for unfinished rows, and bytes of device memory in each; a batch of more is finished in
  // parts. A record that needs more gets it. 0: by the memory that is free (device_lanes.h).
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

  // Every member may be called from any thread, start() by one at a time.
  // `interrupted`, called every 50 ms while it waits, may throw; the call may be made again then.

  // Begins a run; ends the one before.
  void start(std::unique_ptr<BatchFeed> feed, const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);
  // Ends the run. Waits for the feed's call that is under way.
  void stop(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);
  // The next batch, or nothing after the last, or when somebody stops the run meanwhile; then, or
  // after an error, the run is over.
  std::optional<DeviceBatch> next(const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);

  // next() in its steps, for several prefetchers that get parts of the same batches. Of these only
  // one thread may take any.
  // The result of look(): a batch for take(); an incomplete one; the end, or that the run was
  // stopped.
  struct Front {
    enum class Kind { kThere, kNotWhole, kNone };
    Kind kind = Kind::kNone;
    std::shared_ptr<void> rest = {};  // of one that is not whole
  };
  // Waits for the next batch, and for what the device says of it. Throws as next().
  Front look(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);
  // Nothing where it is another by now.
  std::optional<DeviceBatch> take() EXCLUDES_LOCK(mutex_);
  // The next batch is to be the one with this rest, of any part.
  void go_back_to(const std::shared_ptr<void>& rest) EXCLUDES_LOCK(mutex_);

  // Batches that next() would give at once, the end and an error included.
  int ready() const EXCLUDES_LOCK(mutex_);
  PrefetchStats stats() const EXCLUDES_LOCK(mutex_);

 private:
  enum class Stage { kIdle, kFeed, kStaging, kRoom };
  // While so many batches are finished on the device, as many more than `depth` may be queued.
  static constexpr int kWorkedOn = 2;
  // A copy under way, with what it reads.
  struct Copying {
    std::string batch;  // its name
    bool is_worked_on = false;
    EventPtr done = {};
    std::vector<std::shared_ptr<void>> sources = {};
  };
  // The device's report on a batch's unfinished rows.
  struct Verdict {
    std::shared_ptr<const UnfinishedRows> rows;  // shared: with the copies under way
    std::shared_ptr<uint8_t> bytes;              // shared: likewise
  };
  struct Ready {
    std::optional<DeviceBatch> batch;    // none at the end
    std::vector<Verdict> verdicts = {};  // to be seen before the consumer gets it
    EventPtr done = {};                  // when they are there
    bool not_whole = false;              // as they say
    std::string name = {};
    uint64_t number = 0;  // of all that were ready
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
  void drop_what_is_copied();
  bool has_slot() const;
  void wait_for_copy(Copying& copying) noexcept;
  std::string waits_for() const REQUIRES_LOCK(mutex_);
  Front seen_front() REQUIRES_LOCK(mutex_);
  bool awaits_verdict() const REQUIRES_LOCK(mutex_);
  bool see_verdict() EXCLUDES_LOCK(mutex_);
  bool is_over() EXCLUDES_LOCK(mutex_);
  void say_once(const std::string& what) EXCLUDES_LOCK(mutex_);
  // The error, with the batch in which it occurred.
  Exception named(const Exception& exception, const std::string& batch) const;

  const DevicePtr device_;
  const PrefetchOptions options_;
  const StreamPtr copies_;  // of tensors that are copied as they are
  const StreamPtr joins_;   // nothing but waits: what is after a batch's copies and work
  // Labels that are kept do not keep the images: small tensors have a ring of their own.
  const std::shared_ptr<DeviceRing> large_, small_;
  StagingRing staging_;
  StagingCopier copier_;
  PinnedPieces pieces_;
  DeviceFinisher finisher_;
  std::unique_ptr<BatchFeed> feed_;  // the thread's, while it runs
  std::deque<Copying> copying_;      // the thread's
  int slots_left_ = INT_MAX;         // the thread's: of the last batch,
  size_t copying_then_ = 0;          // and what copying_ was when it was queued

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Ready> ready_ GUARDED_BY(mutex_);
  std::thread thread_ GUARDED_BY(mutex_);
  bool feeding_ GUARDED_BY(mutex_) = false;        // the thread is at work
  std::exception_ptr failure_ GUARDED_BY(mutex_);  // comes after what is ready
  bool stopping_ GUARDED_BY(mutex_) = false;
  // The next batch, Note [Batches that are made again].
  std::optional<std::shared_ptr<void>> again_ GUARDED_BY(mutex_);
  uint64_t numbered_ GUARDED_BY(mutex_) = 0;
  bool running_ GUARDED_BY(mutex_) = false;
  bool consumer_waits_ GUARDED_BY(mutex_) = false;
  Stage stage_ GUARDED_BY(mutex_) = Stage::kIdle;
  std::set<std::string> said_ GUARDED_BY(mutex_);
  std::vector<std::string> messages_ GUARDED_BY(mutex_);  // for `warn`, on the consumer's thread
  PrefetchStats stats_ GUARDED_BY(mutex_);
};

// The parts of the next batch, of prefetchers that share batches; as Prefetcher::next().
std::optional<std::vector<DeviceBatch>> next_of_all(std::span<Prefetcher* const> prefetchers,
                                                    const std::function<void()>& interrupted = {});

}  // namespace headrace
