// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_ahead.h"

#include <sys/resource.h>

#include <algorithm>

#include "headrace/base/clock.h"
#include "headrace/executor/reading/read_ahead_parts.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {
long waits_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

ReadAhead::ReadAhead(SourcePtr source, std::vector<bool> wanted, size_t share_bytes,
                     size_t max_bytes, std::vector<bool> by_range, double record_timeout,
                     ClipChoice clips)
    : source_(std::move(source)),
      wanted_(std::move(wanted)),
      by_range_(std::move(by_range)),
      share_bytes_(share_bytes),
      max_bytes_(max_bytes),
      record_timeout_(record_timeout),
      python_(source_->read_style() == ReadStyle::kPython),
      memory_(source_->read_style() == ReadStyle::kMemory),
      async_(source_->read_style() == ReadStyle::kLater),
      clips_(async_ && std::ranges::find(clips.fields, true) != clips.fields.end()
                 ? std::make_unique<const ClipReads>(*source_, std::move(clips))
                 : nullptr),
      planned_(share_bytes),
      share_(share_bytes, async_),
      inbox_(std::make_shared<Inbox>()) {
  if (!memory_ && !async_) share_.reserve_spares();
  MutexLock lock(inbox_->mutex);
  inbox_->owner = this;
}

ReadAhead::~ReadAhead() {
  {
    MutexLock lock(inbox_->mutex);
    inbox_->owner = nullptr;
  }
  std::vector<std::thread> readers;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    abandoned_ = true;
    changed_.notify_all();
    readers.swap(readers_);
  }
  for (std::thread& reader : readers) reader.join();
  if (!async_) return;
  {
    MutexLock lock(mutex_);
    drop(INT64_MAX);
  }
  inbox_->end_reads(std::stop_source(std::nostopstate));
}

void ReadAhead::start(ReadOrder order) {
  if (async_ && !order.goes_on) inbox_->end_reads(std::stop_source());
  {
    MutexLock lock(mutex_);
    if (async_ && order.spread > 1 && !planned_.is_divided()) {
      planned_.divide_at(source_->block_ends());
    }
    // A stream that continues numbers its records after those of the last stream. Another stream
    // uses numbers for which nothing was read.
    const int64_t base = order.goes_on ? base_ + count_ : std::max(next_, base_ + count_);
    drop(order.goes_on ? base : INT64_MAX);
    base_ = base;
    next_ = std::max(next_, base_);
    sent_ = std::max(sent_, base_);
    spread_ = order.spread;
    at_once_ = order.at_once;
    planned_.hurry(order.goes_on ? 0 : base_ + at_once_);
    alone_.clear();
    index_of_ = std::move(order.index_of);
    row_of_ = std::move(order.row_of);
    count_ = order.count;
    beyond_ = order.beyond;
    awaited_ = -1;
    stopped_ = abandoned_ = false;
    ahead_ = python_ || (!memory_ && !async_ && mean_seconds_ > kSlowSeconds);
    if (ahead_) start_readers();
    changed_.notify_all();
  }
  if (async_) submit(-1);
}

void ReadAhead::abandon() {
  MutexLock lock(mutex_);
  stopped_ = true;
  abandoned_ = true;
  changed_.notify_all();
}

void ReadAhead::stop(const std::function<void()>& interrupted) {
  abandon();
  while (true) {
    {
      MutexLock lock(mutex_);
      if (share_.reading > 0) changed_.wait_for(mutex_, kWaitSlice);
      if (share_.reading == 0) break;
    }
    if (interrupted) interrupted();
  }
  MutexLock lock(mutex_);
  drop(base_ + count_);
  share_.drop_spares();
}

void ReadAhead::drop(int64_t below) {
  while (!entries_.empty() && entries_.begin()->first < below) drop_one(entries_.begin());
}

void ReadAhead::drop_one(std::map<int64_t, Entry>::iterator entry) {
  share_.held -= entry->second.bytes;
  share_.dropped += entry->second.arriving;
  const auto unsent = std::move(entry->second.unsent);
  const auto sent = std::move(entry->second.sent);
  entries_.erase(entry);
  for (const NeighborsPtr& each : sent) {
    if (--each->needed == 0) (void)each->unneeded.request_stop();
  }
  for (const PlannedPieces::Iterator piece : unsent) {
    const FilePiece dropped = std::move(piece->second.piece);
    planned_.erase(piece);
    // Those that wait for it read it themselves.
    if (dropped.shared && arrived_for_others(dropped, nullptr)) changed_.notify_all();
  }
}

void ReadAhead::set_terms(size_t max_bytes, RecordData& out) const {
  out.max_bytes = max_bytes;
  out.by_range = by_range_.empty() ? nullptr : &by_range_;
}

void ReadAhead::read_alone(int64_t index, RecordData& out, double waited, RowPosition row) const {
  set_terms(max_bytes_, out);
  const ReadDeadline deadline(record_timeout_, waited);
  if (!clips_) return source_->read({&index, 1}, wanted_, {&out, 1});
  Result<std::vector<StagedVideo>> videos = clips_->open(index, row, max_bytes_);
  if (!videos) {
    out.index = index;
    out.result = std::move(videos.error());
    return;
  }
  const StagedVideos staged(*videos);
  source_->read({&index, 1}, wanted_, {&out, 1});
}

size_t ReadAhead::fetch(int64_t sequence, int64_t index, RecordData& out, bool may_wait,
                        RowPosition row) {
  if (memory_) {
    read_alone(index, out);
    return 0;
  }
  int64_t number;
  {
    MutexLock lock(mutex_);
    number = base_ + sequence;
  }
  return async_ ? fetch_async(number, index, out, may_wait, row)
                : fetch_alone(number, index, out, may_wait, /*waited=*/0, row);
}

// A read in progress finds its entry gone when it completes.
void ReadAhead::skip(int64_t sequence, int64_t count) {
  if (memory_) return;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    const int64_t first = base_ + sequence, end = first + count;
    for (auto each = entries_.lower_bound(first); each != entries_.end() && each->first < end;) {
      drop_one(each++);
    }
    for (int64_t number = std::max(first, next_); number < end; ++number) alone_.insert(number);
    pass_alone();
    changed_.notify_all();
  }
  if (async_) submit(-1);
}

// Skips numbers that must not be read ahead.
void ReadAhead::pass_alone() {
  alone_.erase(alone_.begin(), alone_.lower_bound(next_));
  while (alone_.erase(next_) > 0) ++next_;
}

size_t ReadAhead::fetch_unordered(int64_t index, RecordData& out) {
  read_alone(index, out);
  const size_t bytes = counted(bytes_of(out));
  MutexLock lock(mutex_);
  share_.lent += bytes;
  return bytes;
}

// Returns a record that a reader has read or will read; otherwise the caller reads. REQUIRES if
// reads are submitted: this one is not submitted (claim_alone).
size_t ReadAhead::fetch_alone(int64_t number, int64_t index, RecordData& out, bool may_wait,
                              double waited, RowPosition row) {
  size_t expected = 0;
  {
    MutexLock lock(mutex_);
    for (;;) {
      wait_for_entry(number);
      if (StoppableReads::are_stopped()) return fail_stopped(index, out);
      if (const auto found = entries_.find(number); found != entries_.end()) {
        if (found->second.index == index) return take(number, out);
        drop_one(found);
      }
      expected = share_.expected();
      if (!may_wait || share_.lent == 0 || share_.has_room(expected)) break;
      ++wait_for_room_;
      StoppableReads::wait(changed_, mutex_);
      --wait_for_room_;
    }
    if (!async_) next_ = std::max(next_, number + 1);
    if (async_) ++counts_.requests;
    share_.lent += expected;
    if (out.owned.empty()) out.owned = share_.take_spare().owned;
  }
  const long waits = waits_of_this_thread();
  const double begin = now();
  try {
    read_alone(index, out, waited, row);
  } catch (...) {
    give_back(expected);
    throw;
  }
  const double seconds = waits_of_this_thread() == waits ? 0 : now() - begin;
  const size_t bytes = bytes_of(out);
  size_t read = 0;
  out.each_buffer([&](const Buffer& buffer) { read += buffer.size(); });
  MutexLock lock(mutex_);
  share_.lent += counted(bytes);
  share_.lent -= expected;
  note_read(seconds, read);
  room_changed();
  return counted(bytes);
}

// The result for a record that is dropped like all others of its stream.
size_t ReadAhead::fail_stopped(int64_t index, RecordData& out) {
  out.result = ReadWait::error("", -1);
  out.result.error().where.record = index;
  return 0;
}

void ReadAhead::give_back(size_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(mutex_);
  share_.lent -= bytes;
  room_changed();
}

// Reuses the buffers, so that their pages are touched for the first time only once, which for large
// files is most of the cost of reading.
void ReadAhead::take_back(RecordData& data) {
  RecordData buffers;
  buffers.owned = std::exchange(data.owned, {});
  buffers.parts = std::exchange(data.parts, {});
  MutexLock lock(mutex_);
  share_.keep_used(buffers);
}

// Readers sleep most of the time; a record must not wake them needlessly.
void ReadAhead::room_changed() {
  if (wait_for_room_ > 0 || may_read_on()) changed_.notify_all();
}

bool ReadAhead::is_full() const {
  if (memory_) return false;
  MutexLock lock(mutex_);
  return share_.lent > 0 && !share_.has_room(share_.expected());
}

size_t ReadAhead::held_bytes() const {
  MutexLock lock(mutex_);
  return share_.in_use() - planned_.reserved_bytes();
}

ReadCounts ReadAhead::counts() const {
  MutexLock lock(mutex_);
  ReadCounts counts = counts_;
  if (clips_) clips_->add_counts(counts);
  return counts;
}

}  // namespace headrace
