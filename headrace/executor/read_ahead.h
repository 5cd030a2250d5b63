// SPDX-License-Identifier: Apache-2.0
// Reads records before they are wanted, in exactly the order in which they will be.
//
// Records are numbered by their sequence in the stream that a loader delivers. A worker fetches the
// numbers that it has claimed; what no reader has begun it reads itself, which is the fastest way
// while the files lie in the page cache. When reads turn out to wait for a device, readers start
// and run ahead, as deep as the byte share allows. Thread-safe.
//
// The share covers all encoded bytes: what was read ahead, what workers were given (until they give
// it back), and spare buffers. How large the next record is shows only when it was read, so the
// largest of late is expected; before the first one, records are read one at a time.
//
// Reading ahead is never needed: where a reader finds no memory, or no thread can be had, nothing
// is lost but its help, and whoever fetches the record reads it, with the error that comes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/sources/source.h"

namespace headrace {

class ReadAhead {
 public:
  // A record's file with more than `max_bytes` is not read.
  ReadAhead(SourcePtr source, std::vector<bool> wanted, size_t share_bytes,
            size_t max_bytes = SIZE_MAX);
  ~ReadAhead();

  // Begins a new stream: sequence number -> record index, for 0 <= number < count.
  // REQUIRES: no fetch is under way.
  void start(std::function<int64_t(int64_t)> index_of, int64_t count) EXCLUDES_LOCK(mutex_);
  // Drops what was read ahead; returns when no reader reads any more. `interrupted`, called every
  // 50 ms while it waits, may throw; then stop() must be called again.
  void stop(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);

  // Returns the bytes that the caller has to give back. Waits for room in the share only where
  // `may_wait`. REQUIRES: each number is fetched at most once, and numbers are claimed in ascending
  // order. `index` is the record that stands there. Whoever may wait has nothing to give back, and
  // those who have give back without waiting for a fetch.
  size_t fetch(int64_t sequence, int64_t index, RecordData& out, bool may_wait = false)
      EXCLUDES_LOCK(mutex_);
  void give_back(size_t bytes) EXCLUDES_LOCK(mutex_);
  // Whether a fetch would have to wait for room.
  bool is_full() const EXCLUDES_LOCK(mutex_);

  size_t share() const { return share_; }
  size_t held_bytes() const EXCLUDES_LOCK(mutex_);

 private:
  struct Entry {
    bool ready = false;
    RecordData data;
  };
  void read_loop();
  bool begin_reads(std::vector<int64_t>& indices, std::vector<RecordData>& data)
      REQUIRES_LOCK(mutex_);
  void give_up_reads(int64_t first, size_t count) REQUIRES_LOCK(mutex_);
  void read_now(int64_t index, RecordData& out);
  void note_read(double seconds, size_t bytes) REQUIRES_LOCK(mutex_);
  bool may_read_on() const REQUIRES_LOCK(mutex_);
  size_t expected_bytes() const REQUIRES_LOCK(mutex_);
  bool fits(size_t bytes) const REQUIRES_LOCK(mutex_);
  void wait_for_entry(int64_t sequence) REQUIRES_LOCK(mutex_);
  size_t take(int64_t sequence, RecordData& out) REQUIRES_LOCK(mutex_);
  RecordData take_spare() REQUIRES_LOCK(mutex_);
  void keep_spare(RecordData data) REQUIRES_LOCK(mutex_);
  void start_readers() REQUIRES_LOCK(mutex_);
  void room_changed() REQUIRES_LOCK(mutex_);

  const SourcePtr source_;
  const std::vector<bool> wanted_;
  const size_t share_, max_bytes_;
  const bool python_;  // one reader, many records a call, always ahead
  const bool memory_;  // never ahead

  mutable Mutex mutex_;
  Condition changed_;
  std::function<int64_t(int64_t)> index_of_ GUARDED_BY(mutex_);
  int64_t count_ GUARDED_BY(mutex_) = 0;
  int64_t next_ GUARDED_BY(mutex_) = 0;      // first number that nobody has begun to read
  int64_t awaited_ GUARDED_BY(mutex_) = -1;  // last number that a worker waits for
  std::map<int64_t, Entry> entries_ GUARDED_BY(mutex_);
  std::vector<RecordData> spare_ GUARDED_BY(mutex_);  // buffers to re-use
  size_t held_ GUARDED_BY(mutex_) = 0;                // in entries_
  size_t lent_ GUARDED_BY(mutex_) = 0;
  size_t spare_bytes_ GUARDED_BY(mutex_) = 0;
  size_t reading_ GUARDED_BY(mutex_) = 0;  // records, by readers
  int wait_for_room_ GUARDED_BY(mutex_) = 0;
  size_t largest_ GUARDED_BY(mutex_) = 0;  // of late; 0 before the first
  double mean_seconds_ GUARDED_BY(mutex_) = 0;
  bool ahead_ GUARDED_BY(mutex_) = false;  // readers are to run
  bool closing_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> readers_ GUARDED_BY(mutex_);
};

// Bytes of the share, for as long as it lives.
class ReadLoan {
 public:
  ReadLoan() = default;
  ReadLoan(ReadAhead& lender, size_t bytes) : lender_(&lender), bytes_(bytes) {}
  ReadLoan(ReadLoan&& other) noexcept
      : lender_(std::exchange(other.lender_, nullptr)), bytes_(other.bytes_) {}
  ReadLoan& operator=(ReadLoan&& other) noexcept {
    give_back();
    lender_ = std::exchange(other.lender_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  ~ReadLoan() { give_back(); }
  void give_back() {
    if (lender_) std::exchange(lender_, nullptr)->give_back(bytes_);
  }
  size_t bytes() const { return lender_ ? bytes_ : 0; }

 private:
  ReadAhead* lender_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace headrace
