// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/read_ahead.h"

#include <algorithm>
#include <chrono>

namespace headrace {
namespace {

// Enough to keep a disk's queue busy; readers sleep while the page cache answers.
constexpr int kReaders = 8;
constexpr size_t kHostChunk = 32;    // records for each time that the host's lock is taken
constexpr int64_t kMaxDepth = 1024;  // records ahead, where they are tiny
// A cached file of 100 KB takes about 20 microseconds; a read that waits for a device, far more.
constexpr double kSlowSeconds = 200e-6, kFastSeconds = 60e-6;

size_t bytes_of(const RecordData& data) {
  size_t bytes = 0;
  for (const Buffer& buffer : data.owned) bytes += buffer.capacity();
  return bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ReadAhead::ReadAhead(SourcePtr source, std::vector<bool> wanted, size_t share_bytes)
    : source_(std::move(source)),
      wanted_(std::move(wanted)),
      share_(share_bytes),
      host_(source_->read_style() == ReadStyle::kHost),
      memory_(source_->read_style() == ReadStyle::kMemory) {}

ReadAhead::~ReadAhead() {
  std::vector<std::thread> readers;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    readers.swap(readers_);
  }
  for (std::thread& reader : readers) reader.join();
}

void ReadAhead::start(std::function<int64_t(int64_t)> index_of, int64_t count) {
  MutexLock lock(mutex_);
  index_of_ = std::move(index_of);
  count_ = count;
  next_ = 0;
  ahead_ = host_ || (!memory_ && mean_seconds_ > kSlowSeconds);
  if (ahead_) start_readers();
  changed_.notify_all();
}

void ReadAhead::stop() {
  MutexLock lock(mutex_);
  count_ = 0;
  while (reading_ > 0) changed_.wait(mutex_);
  entries_.clear();
  held_ = 0;
}

void ReadAhead::start_readers() {
  const size_t wanted = host_ ? 1 : kReaders;
  while (readers_.size() < wanted) readers_.emplace_back([this] { read_loop(); });
}

bool ReadAhead::may_read_on() const {
  if (!ahead_ || next_ >= count_) return false;
  if (static_cast<int64_t>(entries_.size()) >= kMaxDepth) return false;
  const size_t expected = static_cast<size_t>(mean_bytes_ * static_cast<double>(reading_ + 1));
  return entries_.empty() || held_ + expected < share_;
}

void ReadAhead::note_duration(double seconds) {
  mean_seconds_ += (seconds - mean_seconds_) / 16;
  if (host_ || memory_) return;
  if (!ahead_ && mean_seconds_ > kSlowSeconds) {
    ahead_ = true;
    start_readers();
    changed_.notify_all();
  } else if (ahead_ && mean_seconds_ < kFastSeconds) {
    ahead_ = false;
  }
}

void ReadAhead::read_now(int64_t index, RecordData& out) {
  source_->read({&index, 1}, wanted_, {&out, 1});
}

void ReadAhead::read_loop() {
  std::vector<int64_t> indices;
  std::vector<RecordData> data;
  mutex_.lock();
  while (!closing_) {
    if (!may_read_on()) {
      changed_.wait(mutex_);
      continue;
    }
    const int64_t first = next_;
    const int64_t chunk = std::min<int64_t>(host_ ? kHostChunk : 1, count_ - first);
    indices.clear();
    data.clear();
    for (int64_t i = 0; i < chunk; ++i) {
      indices.push_back(index_of_(first + i));
      entries_[first + i];
      if (spare_.empty()) spare_.emplace_back();
      data.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
    next_ += chunk;
    reading_ += static_cast<size_t>(chunk);
    mutex_.unlock();
    const double begin = now();
    source_->read(indices, wanted_, data);
    const double seconds = (now() - begin) / static_cast<double>(chunk);
    mutex_.lock();
    for (int64_t i = 0; i < chunk; ++i) {
      const size_t bytes = bytes_of(data[i]);
      mean_bytes_ += (static_cast<double>(bytes) - mean_bytes_) / 16;
      held_ += bytes;
      Entry& entry = entries_[first + i];
      entry.data = std::move(data[i]);
      entry.ready = true;
    }
    reading_ -= static_cast<size_t>(chunk);
    note_duration(seconds);
    changed_.notify_all();
  }
  mutex_.unlock();
}

void ReadAhead::fetch(int64_t sequence, int64_t index, RecordData& out) {
  if (memory_) return read_now(index, out);
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(sequence);
    if (found == entries_.end() && host_ && sequence >= next_ && sequence < count_) {
      // The host's reader comes to it; several threads asking for the host's lock would not help.
      while ((found = entries_.find(sequence)) == entries_.end() && !closing_)
        changed_.wait(mutex_);
    }
    if (found != entries_.end()) {
      while (!(found = entries_.find(sequence))->second.ready) changed_.wait(mutex_);
      std::swap(out, found->second.data);
      held_ -= bytes_of(out);
      if (spare_.size() < 64) spare_.push_back(std::move(found->second.data));
      entries_.erase(found);
      changed_.notify_all();
      return;
    }
    next_ = std::max(next_, sequence + 1);
  }
  const double begin = now();
  read_now(index, out);
  MutexLock lock(mutex_);
  note_duration(now() - begin);
}

size_t ReadAhead::held_bytes() const {
  MutexLock lock(mutex_);
  return held_;
}

}  // namespace headrace
