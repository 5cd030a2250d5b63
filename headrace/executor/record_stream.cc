// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_stream.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {
namespace {}  // namespace

// Batches whose memory may be used again; those on loan come back when nobody holds them. Each goes
// to the thread that read it before: memory that lies changed in the other cores' caches is slow to
// write to.
struct RecordStream::Spares : std::enable_shared_from_this<Spares> {
  Mutex mutex;
  std::map<std::thread::id, std::vector<std::unique_ptr<StoredBatch>>> free GUARDED_BY(mutex);

  std::shared_ptr<StoredBatch> take() EXCLUDES_LOCK(mutex) {
    const std::thread::id reader = std::this_thread::get_id();
    std::unique_ptr<StoredBatch> batch;
    {
      MutexLock lock(mutex);
      if (auto& own = free[reader]; !own.empty()) {
        batch = std::move(own.back());  // the latest one: its memory is the likeliest in a cache
        own.pop_back();
      }
    }
    if (!batch) batch = std::make_unique<StoredBatch>();
    auto back = [self = shared_from_this(), reader](StoredBatch* used) {
      std::unique_ptr<StoredBatch> batch(used);
      MutexLock lock(self->mutex);
      try {
        self->free[reader].push_back(std::move(batch));
      } catch (const std::bad_alloc&) {
        // One fewer to use again.
      }
    };
    return {batch.release(), std::move(back)};
  }
};

RecordStream::RecordStream(SourcePtr source, std::vector<int64_t> order, int64_t batch_size,
                           int threads, int64_t depth)
    : source_(std::move(source)),
      order_(std::move(order)),
      batch_size_(batch_size),
      depth_(depth),
      wanted_(source_->schema().size(), true),
      spares_(std::make_shared<Spares>()) {
  try {
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.push_back(start_thread([this] { read_loop(); }));
  } catch (...) {
    end_threads();
    throw;
  }
}

RecordStream::~RecordStream() { end_threads(); }

void RecordStream::end_threads() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

int64_t RecordStream::batches() const {
  return (static_cast<int64_t>(order_.size()) + batch_size_ - 1) / batch_size_;
}

void RecordStream::start() {
  std::map<int64_t, std::shared_ptr<StoredBatch>> dropped;
  MutexLock lock(mutex_);
  ++epoch_;
  begun_ = taken_ = 0;
  running_ = true;
  dropped.swap(ready_);
  failure_ = nullptr;
  changed_.notify_all();
}

bool RecordStream::may_begin() const {
  return running_ && begun_ < batches() && begun_ < taken_ + depth_;
}

std::shared_ptr<StoredBatch> RecordStream::next(const std::function<void()>& interrupted) {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!running_ || taken_ == batches()) return nullptr;
      if (!ready_.contains(taken_) && !failure_) changed_.wait_for(mutex_, kWaitSlice);
      if (const auto found = ready_.find(taken_); found != ready_.end()) {
        std::shared_ptr<StoredBatch> batch = std::move(found->second);
        ready_.erase(found);
        ++taken_;
        if (may_begin()) changed_.notify_all();
        return batch;
      }
      if (failure_) {
        running_ = false;
        std::rethrow_exception(std::exchange(failure_, nullptr));
      }
    }
    if (interrupted) interrupted();
  }
}

void RecordStream::read_batch(int64_t number, StoredBatch& out) const {
  const double begin = now();
  const int64_t first = number * batch_size_;
  const int64_t count = std::min(batch_size_, static_cast<int64_t>(order_.size()) - first);
  out.number = number;
  out.records.resize(static_cast<size_t>(count));
  source_->read(std::span(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
                wanted_, out.records);
  out.read_seconds = now() - begin;
}

void RecordStream::read_loop() {
  mutex_.lock();
  while (!closing_) {
    if (!may_begin()) {
      changed_.wait(mutex_);
      continue;
    }
    const int64_t number = begun_++, epoch = epoch_;
    mutex_.unlock();
    std::shared_ptr<StoredBatch> batch;
    std::exception_ptr failure;
    try {
      batch = spares_->take();
      read_batch(number, *batch);
    } catch (...) {
      failure = std::current_exception();
    }
    mutex_.lock();
    if (epoch != epoch_) continue;  // of an epoch that was given up
    try {
      if (failure) std::rethrow_exception(std::move(failure));
      ready_[number] = std::move(batch);
      if (number == taken_) changed_.notify_all();
    } catch (...) {
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }
  mutex_.unlock();
}

}  // namespace headrace
