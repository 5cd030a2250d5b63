// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/read_ahead.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "headrace/base/clock.h"
#include "headrace/executor/thread_pool.h"

namespace headrace {
namespace {

// Enough to keep a disk's queue busy; readers sleep while the page cache answers.
constexpr int kReaders = 8;
constexpr size_t kPythonChunk = 32;  // records for each time that Python's lock is taken
// Records ahead: what a disk of 10 ms needs for 5,000 records a second; more would only hold
// memory.
constexpr int64_t kMaxDepth = 64, kMaxPythonDepth = 1024;
constexpr size_t kMaxSpare = 64;
// Readers start when reads wait this long for a device on average, and stop when they hardly do.
constexpr double kSlowSeconds = 60e-6, kFastSeconds = 20e-6;

size_t bytes_of(const RecordData& data) {
  size_t bytes = data.row_indexes.capacity();
  data.each_buffer([&](const Buffer& buffer) { bytes += buffer.capacity(); });
  return bytes;
}

// How often this thread has given up the processor to wait. A read from the page cache never does,
// and being preempted on a busy machine does not count, as time would.
long waits_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

ReadAhead::ReadAhead(SourcePtr source, std::vector<bool> wanted, size_t share_bytes,
                     size_t max_bytes)
    : source_(std::move(source)),
      wanted_(std::move(wanted)),
      share_(share_bytes),
      max_bytes_(max_bytes),
      python_(source_->read_style() == ReadStyle::kPython),
      memory_(source_->read_style() == ReadStyle::kMemory) {
  if (!memory_) spare_.reserve(kMaxSpare);
}

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
  awaited_ = -1;
  ahead_ = python_ || (!memory_ && mean_seconds_ > kSlowSeconds);
  if (ahead_) start_readers();
  changed_.notify_all();
}

void ReadAhead::stop(const std::function<void()>& interrupted) {
  {
    MutexLock lock(mutex_);
    count_ = 0;
  }
  while (true) {
    {
      MutexLock lock(mutex_);
      if (reading_ > 0) changed_.wait_for(mutex_, kWaitSlice);
      if (reading_ == 0) break;
    }
    if (interrupted) interrupted();
  }
  MutexLock lock(mutex_);
  entries_.clear();
  held_ = 0;
  spare_.clear();
  spare_bytes_ = 0;
}

void ReadAhead::start_readers() {
  const size_t wanted = python_ ? 1 : kReaders;
  try {
    readers_.reserve(wanted);
    while (readers_.size() < wanted) readers_.push_back(start_thread([this] { read_loop(); }));
  } catch (const std::exception&) {
    ahead_ = !readers_.empty();
  }
}

size_t ReadAhead::expected_bytes() const { return largest_ ? largest_ : share_; }

bool ReadAhead::fits(size_t bytes) const {
  return held_ + lent_ + spare_bytes_ + reading_ * expected_bytes() + bytes <= share_;
}

bool ReadAhead::may_read_on() const {
  if (!ahead_ || next_ >= count_) return false;
  if (awaited_ >= next_) return true;
  if (static_cast<int64_t>(entries_.size()) >= (python_ ? kMaxPythonDepth : kMaxDepth))
    return false;
  return (entries_.empty() && lent_ == 0) || fits(expected_bytes());
}

void ReadAhead::note_read(double seconds, size_t bytes) {
  largest_ = std::max({bytes, largest_ - largest_ / 256, size_t{1}});
  mean_seconds_ += (seconds - mean_seconds_) / 16;
  if (memory_) return;
  if (!ahead_ && (python_ || mean_seconds_ > kSlowSeconds)) {
    ahead_ = true;
    start_readers();
    changed_.notify_all();
  } else if (ahead_ && !python_ && mean_seconds_ < kFastSeconds) {
    ahead_ = false;
  }
}

void ReadAhead::read_now(int64_t index, RecordData& out) {
  out.max_bytes = max_bytes_;
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
    if (!begin_reads(indices, data)) continue;
    mutex_.unlock();
    const long waits = waits_of_this_thread();
    const double begin = now();
    bool read = true;
    try {
      source_->read(indices, wanted_, data);
    } catch (const std::exception&) {
      read = false;
    }
    double seconds = (now() - begin) / static_cast<double>(data.size());
    if (waits_of_this_thread() == waits) seconds = 0;
    mutex_.lock();
    if (!read) {
      give_up_reads(first, data.size());
      continue;
    }
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t bytes = bytes_of(data[i]);
      held_ += bytes;
      --reading_;
      Entry& entry = entries_.find(first + static_cast<int64_t>(i))->second;
      entry.data = std::move(data[i]);
      entry.ready = true;
      note_read(seconds, bytes);
    }
    changed_.notify_all();
  }
  mutex_.unlock();
}

// Claims the records to be read next. False when memory is refused: the readers rest until a record
// was read without them.
bool ReadAhead::begin_reads(std::vector<int64_t>& indices, std::vector<RecordData>& data) {
  const int64_t first = next_;
  indices.clear();
  data.clear();
  try {
    do {
      entries_[next_];
      ++next_;
      ++reading_;
      indices.push_back(index_of_(next_ - 1));
      data.push_back(take_spare());
      data.back().max_bytes = max_bytes_;
    } while (python_ && data.size() < kPythonChunk && may_read_on());
    return true;
  } catch (const std::exception&) {
    give_up_reads(first, static_cast<size_t>(next_ - first));
    return false;
  }
}

// Whoever fetches these records reads them.
void ReadAhead::give_up_reads(int64_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) entries_.erase(first + static_cast<int64_t>(i));
  reading_ -= count;
  ahead_ = false;
  changed_.notify_all();
}

// Until a reader has read it, where one has begun to or will.
void ReadAhead::wait_for_entry(int64_t sequence) {
  auto found = entries_.find(sequence);
  const auto will_be_read = [&]() REQUIRES_LOCK(mutex_) {
    return python_ && ahead_ && !closing_ && sequence >= next_ && sequence < count_;
  };
  if (found == entries_.end() && will_be_read()) {
    // Python's reader comes to it; several threads asking for Python's lock would not help.
    awaited_ = std::max(awaited_, sequence);
    changed_.notify_all();
    while (!entries_.contains(sequence) && will_be_read()) changed_.wait(mutex_);
  }
  while ((found = entries_.find(sequence)) != entries_.end() && !found->second.ready) {
    changed_.wait(mutex_);
  }
}

size_t ReadAhead::take(int64_t sequence, RecordData& out) {
  auto found = entries_.find(sequence);
  std::swap(out, found->second.data);
  const size_t bytes = bytes_of(out);
  held_ -= bytes;
  lent_ += bytes;
  keep_spare(std::move(found->second.data));
  entries_.erase(found);
  changed_.notify_all();
  return bytes;
}

RecordData ReadAhead::take_spare() {
  if (spare_.empty()) return {};
  RecordData data = std::move(spare_.back());
  spare_.pop_back();
  spare_bytes_ -= bytes_of(data);
  return data;
}

void ReadAhead::keep_spare(RecordData data) {
  const size_t bytes = bytes_of(data);
  if (spare_.size() == spare_.capacity() || spare_bytes_ + bytes > share_ / 8 || !fits(bytes)) {
    return;
  }
  spare_bytes_ += bytes;
  spare_.push_back(std::move(data));
}

size_t ReadAhead::fetch(int64_t sequence, int64_t index, RecordData& out, bool may_wait) {
  if (memory_) {
    read_now(index, out);
    return 0;
  }
  size_t expected = 0;
  {
    MutexLock lock(mutex_);
    for (;;) {
      wait_for_entry(sequence);
      if (entries_.contains(sequence)) return take(sequence, out);
      expected = expected_bytes();
      if (!may_wait || lent_ == 0 || fits(expected)) break;
      ++wait_for_room_;
      changed_.wait(mutex_);
      --wait_for_room_;
    }
    next_ = std::max(next_, sequence + 1);
    lent_ += expected;
  }
  const long waits = waits_of_this_thread();
  const double begin = now();
  try {
    read_now(index, out);
  } catch (...) {
    give_back(expected);
    throw;
  }
  const double seconds = waits_of_this_thread() == waits ? 0 : now() - begin;
  const size_t bytes = bytes_of(out);
  MutexLock lock(mutex_);
  lent_ += bytes;
  lent_ -= expected;
  note_read(seconds, bytes);
  room_changed();
  return bytes;
}

void ReadAhead::give_back(size_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(mutex_);
  lent_ -= bytes;
  room_changed();
}

// Readers sleep for most of the time; a record must not wake them for nothing.
void ReadAhead::room_changed() {
  if (wait_for_room_ > 0 || may_read_on()) changed_.notify_all();
}

bool ReadAhead::is_full() const {
  if (memory_) return false;
  MutexLock lock(mutex_);
  return lent_ > 0 && !fits(expected_bytes());
}

size_t ReadAhead::held_bytes() const {
  MutexLock lock(mutex_);
  return held_ + lent_ + spare_bytes_;
}

}  // namespace headrace
