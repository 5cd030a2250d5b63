// SPDX-License-Identifier: Apache-2.0
// Read-ahead by threads: for local files on slow disks, and for sources in Python.
#include <algorithm>
#include <chrono>
#include <new>

#include "headrace/base/clock.h"
#include "headrace/executor/reading/read_ahead_parts.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {
namespace {

// Enough to keep a disk's queue busy; readers sleep while the page cache answers.
constexpr int kReaders = 8;
constexpr size_t kPythonChunk = 32;  // records each time the GIL is taken
// Records ahead: enough for 5,000 records per second from a disk with 10 ms latency; more would
// only hold memory.
constexpr int64_t kMaxDepth = 64, kMaxPythonDepth = 1024;

}  // namespace

void ReadAhead::start_readers() {
  const size_t wanted = python_ ? 1 : kReaders;
  try {
    readers_.reserve(wanted);
    while (readers_.size() < wanted) readers_.push_back(start_thread([this] { read_loop(); }));
  } catch (const std::exception&) {
    ahead_ = !readers_.empty();
  }
}

bool ReadAhead::may_read_on() const {
  if (!ahead_ || stopped_ || next_ >= end()) return false;
  if (awaited_ >= next_) return true;
  if (static_cast<int64_t>(entries_.size()) >= (python_ ? kMaxPythonDepth : kMaxDepth))
    return false;
  return (entries_.empty() && share_.lent == 0) || share_.fits(share_.expected());
}

void ReadAhead::note_read(double seconds, size_t bytes) {
  share_.note(bytes);
  mean_seconds_ += (seconds - mean_seconds_) / 16;
  if (memory_ || async_) return;
  if (!ahead_ && (python_ || mean_seconds_ > kSlowSeconds)) {
    ahead_ = true;
    start_readers();
    changed_.notify_all();
  } else if (ahead_ && !python_ && mean_seconds_ < kFastSeconds) {
    ahead_ = false;
  }
}

void ReadAhead::read_loop() {
  std::vector<int64_t> indices;
  std::vector<RecordData> data;
  mutex_.lock();
  while (!closing_) {
    pass_alone();
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
      const StoppableReads stoppable(abandoned_);
      const ReadDeadline deadline(record_timeout_);
      source_->read(indices, wanted_, data);
    } catch (const std::exception&) {
      read = false;
    }
    double seconds = (now() - begin) / static_cast<double>(data.size());
    if (waits_of_this_thread() == waits) seconds = 0;
    mutex_.lock();
    if (!read) {
      abandon_reads(first, data.size());
      continue;
    }
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t bytes = bytes_of(data[i]);
      --share_.reading;
      if (put(first + static_cast<int64_t>(i), std::move(data[i]))) note_read(seconds, bytes);
    }
    changed_.notify_all();
  }
  mutex_.unlock();
}

// Stores a record that was read. It is not kept if it was dropped in the meantime, or may exceed
// the limit of read-ahead: then its worker reads it. Sources report that by various errors (such as
// too many masks of a picture), so a record that fails under the lower limit, or has not arrived in
// time before anything waited for it, is read again without it.
bool ReadAhead::put(int64_t number, RecordData data) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return false;
  const bool left = !data.result && (abandoned_ || !python_);
  if (left) {
    entries_.erase(found);
    return false;
  }
  Entry& entry = found->second;
  entry.bytes = counted(bytes_of(data));
  share_.held += entry.bytes;
  entry.data = std::move(data);
  entry.ready = true;
  return true;
}

// Claims the records to read next. False if an allocation fails: the readers pause until a record
// has been read without them.
bool ReadAhead::begin_reads(std::vector<int64_t>& indices, std::vector<RecordData>& data) {
  const int64_t first = next_;
  indices.clear();
  data.clear();
  try {
    do {
      const int64_t index = index_of_(next_ - base_);
      entries_[next_].index = index;
      ++next_;
      ++share_.reading;
      indices.push_back(index);
      data.push_back(share_.take_spare());
      set_terms(python_ ? max_bytes_ : std::min(max_bytes_, share_.allowance()), data.back());
    } while (python_ && data.size() < kPythonChunk && !alone_.contains(next_) && may_read_on());
    return true;
  } catch (const std::exception&) {
    abandon_reads(first, static_cast<size_t>(next_ - first));
    return false;
  }
}

// Workers read these records themselves.
void ReadAhead::abandon_reads(int64_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) entries_.erase(first + static_cast<int64_t>(i));
  share_.reading -= count;
  ahead_ = false;
  changed_.notify_all();
}

// Waits until a reader has read it, if one has begun to or will.
void ReadAhead::wait_for_entry(int64_t number) {
  auto found = entries_.find(number);
  const auto will_be_read = [&]() REQUIRES_LOCK(mutex_) {
    return python_ && ahead_ && !closing_ && !stopped_ && number >= next_ && number < end() &&
           !StoppableReads::are_stopped();
  };
  if (found == entries_.end() && will_be_read()) {
    // The Python reader will get to it; several threads competing for the GIL would not help.
    awaited_ = std::max(awaited_, number);
    changed_.notify_all();
    while (!entries_.contains(number) && will_be_read()) StoppableReads::wait(changed_, mutex_);
  }
  while ((found = entries_.find(number)) != entries_.end() && !found->second.ready &&
         !StoppableReads::are_stopped()) {
    StoppableReads::wait(changed_, mutex_);
  }
}

size_t ReadAhead::take(int64_t number, RecordData& out) {
  auto found = entries_.find(number);
  std::swap(out, found->second.data);
  const size_t bytes = counted(bytes_of(out));
  share_.held -= found->second.bytes;
  share_.lent += bytes;
  share_.keep_spare(found->second.data);
  entries_.erase(found);
  changed_.notify_all();
  return bytes;
}

}  // namespace headrace
