// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/prefetcher.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {
namespace {

constexpr auto kCopySlice = std::chrono::milliseconds(1);

}  // namespace

void BatchFeed::again(const std::shared_ptr<void>&) {
  throw std::logic_error("this feed gives no unfinished rows");
}

Prefetcher::Prefetcher(DevicePtr device, PrefetchOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      copies_(device_->make_stream()),
      joins_(device_->make_stream()),
      // One more than the ready batches: the one that the consumer works on.
      large_(std::make_shared<DeviceRing>(device_, options_.depth + 1)),
      small_(std::make_shared<DeviceRing>(device_, options_.depth + 1)),
      staging_(device_, options_.depth, options_.staging_limit),
      pieces_(device_),
      finisher_(device_, {.lanes = options_.lanes, .lane_bytes = options_.scratch_limit}) {
  const auto wake = [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  };
  large_->on_return(wake);
  small_->on_return(wake);
}

Prefetcher::~Prefetcher() {
  if (forked_from_running_engine()) {
    new std::thread(std::move(thread_));  // the thread does not exist here, and cannot be joined
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
  thread_ = start_thread([this] { feed_all(); });  // the thread starts by taking the lock
  feeding_ = running_ = true;
}

void Prefetcher::stop(const std::function<void()>& interrupted) {
  throw_if_forked();
  std::thread ended;  // joined by the first caller
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
  std::unique_ptr<BatchFeed> feed;
  while (true) {
    std::optional<Ready> dropped;  // leases are released without the lock; a deque would allocate
    MutexLock lock(mutex_);
    if (!stopping_) return;  // another run has begun in the meantime
    if (ready_.empty()) {
      feed.swap(feed_);
      failure_ = nullptr;
      return;
    }
    dropped.emplace(std::move(ready_.front()));
    ready_.pop_front();
  }
}

void Prefetcher::feed_all() {
  std::exception_ptr error;
  do {
    error = nullptr;
    try {
      feed_run();
    } catch (...) {
      error = std::current_exception();
      if (!copying_.empty() && !copying_.back().done) {  // a batch that was abandoned midway
        wait_for_copy(copying_.back());
        copying_.pop_back();
      }
    }
  } while (!is_over());
  for (Copying& copying : copying_) wait_for_copy(copying);
  copying_.clear();
  MutexLock lock(mutex_);
  failure_ = std::move(error);  // moved, so that the consumer frees it
  stage_ = Stage::kIdle;
  feeding_ = false;
  changed_.notify_all();
}

// Runs to the end of the feed, or until batches have to be made again.
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
    slots_left_ = batch->slots_left;
    try {
      push(deliver(std::move(*batch)));
      copying_then_ = copying_.size();
    } catch (const Exception& exception) {
      throw named(exception, name);
    }
  }
}

// Waits after the feed's end or error, because the batches before may still have to be made again,
// even if only another device reports a bad row in its part.
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

// Waits for a copy, whose input must stay valid until then.
void Prefetcher::wait_for_copy(Copying& copying) noexcept {
  try {
    if (!copying.done) copying.done = after_all();
    wait_until_done(*copying.done);
  } catch (const std::exception&) {
    // The device has failed, and reports that at its next use: it no longer reads this memory.
  }
}

// False if the run has to end, or to go back.
bool Prefetcher::wait_for_place() {
  while (true) {
    // A copy in progress holds memory of the feed, which is returned as soon as possible.
    drop_copies();
    MutexLock lock(mutex_);
    if (stopping_ || again_) return false;
    const auto worked_on = std::ranges::count_if(copying_, &Copying::is_worked_on);
    const int most = options_.depth + std::min<int>(kWorkedOn, int(worked_on));
    if (static_cast<int>(ready_.size()) < most && has_slot()) return true;
    stage_ = Stage::kIdle;
    changed_.wait_for(mutex_, copying_.empty() ? kWaitSlice : kCopySlice);
  }
}

void Prefetcher::drop_copies() {
  try {
    while (!copying_.empty() && copying_.front().done->done()) copying_.pop_front();
  } catch (const Exception& exception) {
    throw named(exception, copying_.front().batch);
  }
}

// The feed's last slot does not count, so that it can be filled during copies.
bool Prefetcher::has_slot() const {
  return slots_left_ > 1 || copying_.empty() || copying_.size() < copying_then_;
}

// Whether the next batch is unwanted, because the run ends or goes back.
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
  if (again_) return;  // takes precedence
  ready.number = ++numbered_;
  ready_.push_back(std::move(ready));
  changed_.notify_all();
}

void Prefetcher::warn_once(const std::string& what) {
  MutexLock lock(mutex_);
  if (warned_.insert(what).second) messages_.push_back(what);
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
  const DeviceLanes::Stats lanes = finisher_.stats();
  stats.scratch_bytes = lanes.bytes;
  stats.lanes = lanes.lanes;
  stats.lane_bytes = lanes.limit;
  stats.device_bytes = large_->bytes() + small_->bytes() + stats.scratch_bytes;
  return stats;
}

}  // namespace headrace
