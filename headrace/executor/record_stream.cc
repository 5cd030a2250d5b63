// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_stream.h"

#include <algorithm>
#include <chrono>

namespace headrace {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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
      MutexLock lock(self->mutex);
      self->free[reader].emplace_back(used);
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
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { read_loop(); });
}

RecordStream::~RecordStream() {
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
  changed_.notify_all();
}

bool RecordStream::may_begin() const {
  return running_ && begun_ < batches() && begun_ < taken_ + depth_;
}

std::shared_ptr<StoredBatch> RecordStream::next() {
  MutexLock lock(mutex_);
  if (!running_ || taken_ == batches()) return nullptr;
  auto found = ready_.find(taken_);
  while (found == ready_.end()) {
    changed_.wait(mutex_);
    found = ready_.find(taken_);
  }
  std::shared_ptr<StoredBatch> batch = std::move(found->second);
  ready_.erase(found);
  ++taken_;
  if (may_begin()) changed_.notify_all();
  return batch;
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
    std::shared_ptr<StoredBatch> batch = spares_->take();
    read_batch(number, *batch);
    mutex_.lock();
    if (epoch != epoch_) continue;  // of an epoch that was given up
    const bool awaited = number == taken_;
    ready_[number] = std::move(batch);
    if (awaited) changed_.notify_all();
  }
  mutex_.unlock();
}

}  // namespace headrace
