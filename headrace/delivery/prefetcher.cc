// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/prefetcher.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {
namespace {

constexpr auto kCopySlice = std::chrono::milliseconds(1);
constexpr size_t kAlignment = 256;  // of a tensor in its slab
constexpr size_t kSmall = size_t{64}
                          << 10;  // bytes of a tensor that does not share with large ones

// An empty tensor has a place too.
size_t aligned(size_t bytes) { return (bytes / kAlignment + 1) * kAlignment; }

bool is_small(const HostTensor& tensor) { return tensor.view.dense_bytes() < kSmall; }

}  // namespace

void BatchFeed::again(const std::shared_ptr<void>&) {
  throw std::logic_error("this feed gives no unfinished rows");
}

// What of a batch passes through pinned memory.
struct Prefetcher::Staged {
  uint8_t* memory = nullptr;  // null: the limit leaves none
  size_t at = 0;
  uint64_t crossed = 0;                                       // bytes, all of the batch
  std::vector<std::vector<DeviceFinisher::Part>> parts = {};  // of its unfinished tensors, in order
  size_t finished = 0;                                        // of these
  std::vector<Verdict> verdicts = {};

  // Null: the limit leaves none.
  uint8_t* room(size_t bytes) {
    if (!memory) return nullptr;
    uint8_t* const to = memory + at;
    at += aligned(bytes);
    return to;
  }
  const void* pass(const void* from, size_t bytes) {
    uint8_t* const to = room(bytes);
    if (to && bytes > 0) std::memcpy(to, from, bytes);
    return to ? to : from;
  }
};

Prefetcher::Prefetcher(DevicePtr device, PrefetchOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      copies_(device_->make_stream()),
      // One more than are ready: the batch that the consumer works on.
      large_(std::make_shared<DeviceRing>(device_, options_.depth + 1)),
      small_(std::make_shared<DeviceRing>(device_, options_.depth + 1)),
      staging_(device_, options_.depth, options_.staging_limit),
      pieces_(device_),
      finisher_(device_, options_.scratch_limit) {
  const auto wake = [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  };
  large_->on_return(wake);
  small_->on_return(wake);
}

Prefetcher::~Prefetcher() {
  if (forked_from_running_engine()) {
    new std::thread(std::move(thread_));  // it does not exist here, and cannot be joined
    return;
  }
  stop();
  large_->on_return(nullptr);
  small_->on_return(nullptr);
}

void Prefetcher::start(std::unique_ptr<BatchFeed> feed, const std::function<void()>& interrupted) {
  stop(interrupted);
  announce_engine_thread();
  MutexLock lock(mutex_);
  feed_ = std::move(feed);
  stopping_ = false;
  again_ = std::nullopt;
  thread_ = start_thread([this] { feed_all(); });  // it begins by asking for the lock
  feeding_ = running_ = true;
}

void Prefetcher::stop(const std::function<void()>& interrupted) {
  throw_if_forked();
  std::thread ended;  // by whoever comes first
  while (true) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      running_ = false;
      changed_.notify_all();
      if (feeding_) changed_.wait_for(mutex_, kWaitSlice);
      if (!feeding_) {
        ended.swap(thread_);
        break;
      }
    }
    if (interrupted) interrupted();
  }
  if (ended.joinable()) ended.join();
  std::deque<Ready> dropped;  // leases end without the lock
  std::unique_ptr<BatchFeed> feed;
  MutexLock lock(mutex_);
  if (!stopping_) return;  // another run has begun meanwhile
  dropped.swap(ready_);
  feed.swap(feed_);
  failure_ = nullptr;
}

void Prefetcher::feed_all() {
  std::exception_ptr error;
  do {
    error = nullptr;
    try {
      feed_run();
    } catch (...) {
      error = std::current_exception();
      if (!copying_.empty() && !copying_.back().done) {  // a batch that was given up midway
        wait_for_copy(copying_.back());
        copying_.pop_back();
      }
    }
  } while (!is_over());
  for (Copying& copying : copying_) wait_for_copy(copying);
  copying_.clear();
  MutexLock lock(mutex_);
  failure_ = std::move(error);  // here, and moved: the consumer is the one that frees it
  stage_ = Stage::kIdle;
  feeding_ = false;
  changed_.notify_all();
}

// To the end of the feed, or until batches are to be made again.
void Prefetcher::feed_run() {
  std::optional<std::shared_ptr<void>> again;
  {
    MutexLock lock(mutex_);
    again.swap(again_);
  }
  if (again) feed_->again(*again);
  while (wait_for_place()) {
    enter(Stage::kFeed);
    const double begin = now();
    std::optional<HostBatch> batch = feed_->next([this] { return is_unwanted(); });
    {
      MutexLock lock(mutex_);
      stats_.feed_seconds += now() - begin;
    }
    if (!batch || is_unwanted()) return push({});
    const std::string name = batch->name;
    try {
      push(deliver(std::move(*batch)));
    } catch (const Exception& exception) {
      throw named(exception, name);
    }
  }
}

// After the feed's end, or its error: the batches before that may still be made again, also for
// what another device says of its part.
bool Prefetcher::is_over() {
  MutexLock lock(mutex_);
  const auto any_left = [&]() REQUIRES_LOCK(mutex_) {
    return !ready_.empty() && ready_.front().batch;
  };
  while (!stopping_ && !again_ && any_left()) {
    stage_ = Stage::kIdle;
    changed_.wait_for(mutex_, kWaitSlice);
  }
  return stopping_ || !again_;
}

// What it reads from must stay until then.
void Prefetcher::wait_for_copy(Copying& copying) noexcept {
  try {
    if (!copying.done) copying.done = after_all();
    wait_until_done(*copying.done);
  } catch (const std::exception&) {
    // The device has failed, and says so at its next use: nothing of it reads any more.
  }
}

// False when the run is to end, or to go back.
bool Prefetcher::wait_for_place() {
  while (true) {
    // A copy under way holds memory of the feed's, which goes back as soon as may be.
    drop_what_is_copied();
    MutexLock lock(mutex_);
    if (stopping_ || again_) return false;
    if (static_cast<int>(ready_.size()) < options_.depth) return true;
    stage_ = Stage::kIdle;
    changed_.wait_for(mutex_, copying_.empty() ? kWaitSlice : kCopySlice);
  }
}

Prefetcher::Ready Prefetcher::deliver(HostBatch batch) {
  size_t large = 0, small = 0, staged = 0;
  uint64_t delivered = 0;
  Staged stage;
  for (const HostTensor& tensor : batch.tensors) {
    const size_t bytes = aligned(tensor.view.dense_bytes());
    (is_small(tensor) ? small : large) += bytes;
    delivered += tensor.view.dense_bytes();
    if (!tensor.unfinished) {
      if (!tensor.pinned) staged += bytes;
      continue;
    }
    stage.parts.push_back(finisher_.parts_of(tensor.unfinished, tensor.view.data));
    for (const DeviceFinisher::Part& part : stage.parts.back()) {
      staged += aligned(part.rows->parameters().size());
      if (tensor.pinned) continue;
      for (const DeviceFinisher::Crossing& piece : part.slot) staged += aligned(piece.bytes);
    }
  }
  DeviceBatch out{{}, std::move(batch.rest)};
  if (batch.tensors.empty()) return {std::move(out)};
  enter(Stage::kRoom);
  const std::shared_ptr<DeviceLease> large_lease = large > 0 ? lease_of(large_, large) : nullptr;
  const std::shared_ptr<DeviceLease> small_lease = small > 0 ? lease_of(small_, small) : nullptr;
  const bool gone = (large > 0 && !large_lease) || (small > 0 && !small_lease);
  if (gone) return {std::move(out)};  // nobody waits for it
  enter(Stage::kStaging);
  const double begin = now();
  if (staged > 0) stage.memory = static_cast<uint8_t*>(staging_.take(staged));
  size_t large_at = 0, small_at = 0;
  // Before a copy is queued that it must outlive.
  Copying& copying = copying_.emplace_back(Copying{.batch = batch.name});
  for (HostTensor& tensor : batch.tensors) {
    const bool is_of_small = is_small(tensor);
    const std::shared_ptr<DeviceLease>& lease = is_of_small ? small_lease : large_lease;
    size_t& at = is_of_small ? small_at : large_at;
    DeviceTensor moved{tensor.view, lease};
    moved.view.data = static_cast<uint8_t*>(lease->memory()) + at;
    at += aligned(tensor.view.dense_bytes());
    (this->*(tensor.unfinished ? &Prefetcher::finish : &Prefetcher::copy))(tensor, moved.view.data,
                                                                           stage, copying);
    out.tensors.push_back(std::move(moved));
  }
  if (stage.memory) staging_.fence(copies_->record_for_host());
  copying.done = stage.parts.empty() ? copies_->record_for_host() : after_all();
  EventPtr done = copying.done;
  for (const auto& lease : {large_lease, small_lease}) {
    if (lease) lease->set_ready(done);
  }
  if (copying.sources.empty()) copying_.pop_back();
  const double seconds = now() - begin;
  if (!staging_.all_pinned()) {
    say_once("host memory cannot be pinned for " + device_->name() +
             ": copies to it are slower and wait for the host (ulimit -l, or a container's limit "
             "on locked memory)");
  }
  MutexLock lock(mutex_);
  ++stats_.batches;
  stats_.bytes += stage.crossed;
  stats_.delivered_bytes += delivered;
  stats_.staging_seconds += seconds;
  stats_.pinned_bytes = staging_.bytes();
  return {.batch = std::move(out),
          .verdicts = std::move(stage.verdicts),
          .done = std::move(done),
          .name = std::move(batch.name)};
}

void Prefetcher::copy(HostTensor& tensor, void* to, Staged& stage, Copying& copying) {
  const size_t bytes = tensor.view.dense_bytes();
  const void* const from = tensor.view.data;
  if (uint8_t* const staged = tensor.pinned ? nullptr : stage.room(bytes)) {
    copier_.copy(to, staged, from, bytes, *copies_);
  } else {
    copying.sources.push_back(std::move(tensor.lease));
    copies_->copy(to, from, bytes);
  }
  stage.crossed += bytes;
}

// The slot is held until the work on it is done: rows that it does not do are copied by it.
void Prefetcher::finish(HostTensor& tensor, void* to, Staged& stage, Copying& copying) {
  copying.sources.push_back(std::move(tensor.lease));
  const size_t row_bytes =
      tensor.view.shape[0] > 0 ? tensor.view.dense_bytes() / size_t(tensor.view.shape[0]) : 0;
  for (DeviceFinisher::Part& part : stage.parts[stage.finished++]) {
    const UnfinishedRows& rows = *part.rows;
    // shared: held with the slot
    copying.sources.push_back(std::const_pointer_cast<UnfinishedRows>(part.rows));
    for (DeviceFinisher::Crossing& piece : part.slot) {
      if (!tensor.pinned) piece.from = stage.pass(piece.from, piece.bytes);
    }
    part.parameters = stage.pass(part.parameters, rows.parameters().size());
    if (const size_t bytes = rows.verdict_bytes(); bytes > 0) {
      const std::shared_ptr<uint8_t> verdict = pieces_.take(bytes);
      part.verdict = verdict.get();
      copying.sources.push_back(verdict);
      stage.verdicts.push_back({part.rows, verdict});
    }
    finisher_.finish(part, *copies_, static_cast<uint8_t*>(to) + size_t(part.first) * row_bytes);
    stage.crossed += rows.crossing_bytes();
  }
}

EventPtr Prefetcher::after_all() { return finisher_.after(*copies_); }

std::shared_ptr<DeviceLease> Prefetcher::lease_of(const std::shared_ptr<DeviceRing>& ring,
                                                  size_t bytes) {
  while (true) {
    bool starved;
    {
      MutexLock lock(mutex_);
      if (stopping_) return nullptr;
      // Only the consumer itself could give memory back, and it waits for us: it keeps its batches.
      starved = consumer_waits_ && ready_.empty();
    }
    Slab slab = ring->take(bytes, *copies_, starved);
    if (slab.memory) {
      if (slab.spare) {
        say_once("the consumer keeps " + std::to_string(ring->slabs()) + " batches on " +
                 device_->name() +
                 ": each further one takes memory of its own (drop batches before taking the next, "
                 "or raise depth)");
        MutexLock lock(mutex_);
        ++stats_.beyond;
      }
      return std::make_shared<DeviceLease>(ring, std::move(slab));
    }
    MutexLock lock(mutex_);
    if (!stopping_ && !(consumer_waits_ && ready_.empty())) changed_.wait_for(mutex_, kWaitSlice);
  }
}

void Prefetcher::drop_what_is_copied() {
  try {
    while (!copying_.empty() && copying_.front().done->done()) copying_.pop_front();
  } catch (const Exception& exception) {
    throw named(exception, copying_.front().batch);
  }
}

// What comes next, because the run ends or goes back.
bool Prefetcher::is_unwanted() const {
  MutexLock lock(mutex_);
  return stopping_ || again_;
}

void Prefetcher::enter(Stage stage) {
  MutexLock lock(mutex_);
  stage_ = stage;
}

void Prefetcher::push(Ready ready) {
  MutexLock lock(mutex_);
  if (again_) return;  // which comes first
  ready.number = ++numbered_;
  ready_.push_back(std::move(ready));
  changed_.notify_all();
}

void Prefetcher::say_once(const std::string& what) {
  MutexLock lock(mutex_);
  if (said_.insert(what).second) messages_.push_back(what);
}

Exception Prefetcher::named(const Exception& exception, const std::string& batch) const {
  Error error = exception.error();
  if (!batch.empty() && error.note.empty()) {
    error.note = batch + ", on its way to " + device_->name();
  }
  return Exception(std::move(error));
}

int Prefetcher::ready() const {
  MutexLock lock(mutex_);
  return static_cast<int>(ready_.size()) + (failure_ ? 1 : 0);
}

PrefetchStats Prefetcher::stats() const {
  PrefetchStats stats;
  {
    MutexLock lock(mutex_);
    stats = stats_;
  }
  stats.scratch_bytes = finisher_.bytes();
  stats.device_bytes = large_->bytes() + small_->bytes() + stats.scratch_bytes;
  return stats;
}

}  // namespace headrace
