// SPDX-License-Identifier: Apache-2.0
// Reads records before they are needed, in exactly the order in which they will be needed.
//
// Records are numbered by their sequence in the stream that a loader delivers. How they are read
// ahead depends on the storage:
// - Local files: a worker reads the records it has claimed itself, which is fastest while the files
// are in the page cache. When reads turn out to wait for a device, readers start and run ahead
// (read_ahead_threads.cc). A Python source is always read this way, by one reader.
// - Many records are requested from an asynchronous storage at once, neighbors in a file with one
// read; no thread waits for them (read_ahead_async.cc). ReadDepth decides how many.
// - Memory is not read ahead. At the end of a stream the first records of the next stream are read,
// if it is known.
//
// The budget covers all encoded bytes: records read ahead or in flight, those lent to workers
// (until returned), and spare buffers. A record larger than half of the budget counts as half
// (counted()) and takes the rest from the records' budget, so that small records continue alongside
// it. A record larger than nearly all recent ones is not read ahead; the worker that fetches it
// reads it.
//
// Reading ahead is optional: if a reader finds no memory, or no thread can be started, only the
// speedup is lost, and the worker that fetches the record reads it and gets the error. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/reading/clip_reads.h"
#include "headrace/executor/reading/planned_pieces.h"
#include "headrace/executor/reading/read_counts.h"
#include "headrace/executor/reading/read_depth.h"
#include "headrace/executor/reading/read_share.h"
#include "headrace/executor/reading/shared_pieces.h"
#include "headrace/sources/source.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {

// The records of a stream: the record of each sequence number from 0 to count, and after these, if
// known, the first `beyond` of the next stream.
struct ReadOrder {
  std::function<int64_t(int64_t)> index_of;
  int64_t count = 0;
  int64_t beyond = 0;
  // This stream continues the previous one as planned: data read ahead for it is kept.
  bool goes_on = false;
  // Records that are adjacent in storage are at most this far apart in the stream; 0: anywhere in
  // it.
  int64_t spread = 0;
  // The first batch waits for this many records together: they are requested at once, and are not
  // delayed by reads of an abandoned stream.
  int64_t at_once = 0;
  // The row that the record of each sequence number is read for; empty: unknown.
  std::function<RowPosition(int64_t)> row_of = {};
};

class ReadAhead {
 public:
  // A record's file with more than `max_bytes` is not read. `by_range`: see RecordData. With an
  // asynchronous storage, a record's bytes are awaited for `record_timeout` seconds; 0: no limit.
  // `clips`: what is needed of videos in separate files.
  ReadAhead(SourcePtr source, std::vector<bool> wanted, size_t share_bytes,
            size_t max_bytes = SIZE_MAX, std::vector<bool> by_range = {}, double record_timeout = 0,
            ClipChoice clips = {});
  ~ReadAhead();

  // Starts a new stream. Requests of the last one that it does not need may end early. REQUIRES: no
  // fetch is in progress.
  void start(ReadOrder order) EXCLUDES_LOCK(mutex_);
  // Wakes those that wait for a record of this stream: readers stop waiting, and so does a fetch
  // whose thread's reads were stopped (StoppableReads); it returns an error. Afterwards, call
  // stop().
  void abandon() EXCLUDES_LOCK(mutex_);
  // Abandons and drops data read ahead of this stream; returns once no reader is active. Reads of
  // the next stream may remain, or be in progress, until start(). `interrupted`, called every 50 ms
  // while it waits, may throw; then stop() must be called again.
  void stop(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);

  // Fetches a record; returns the number of bytes that the caller has to give back. Waits for room
  // in the share only if `may_wait`. REQUIRES: each number is fetched at most once, and numbers are
  // claimed in ascending order. `index` is the record at that number, `row` the row that it is read
  // for: of a separate video file, only what this row needs is read. A caller that may wait holds
  // no such bytes; callers that hold some give them back without waiting for a fetch.
  size_t fetch(int64_t sequence, int64_t index, RecordData& out, bool may_wait = false,
               RowPosition row = {}) EXCLUDES_LOCK(mutex_);
  // These numbers will not be fetched. Data read for them is dropped.
  void skip(int64_t sequence, int64_t count) EXCLUDES_LOCK(mutex_);
  // Reads a record that is not in the stream, on the calling thread. `waited`: seconds that it has
  // waited for the record already.
  void read_alone(int64_t index, RecordData& out, double waited = 0, RowPosition row = {}) const;
  // The same, but counts its bytes in the share and returns them: the caller gives them back.
  size_t fetch_unordered(int64_t index, RecordData& out) EXCLUDES_LOCK(mutex_);
  void give_back(size_t bytes) EXCLUDES_LOCK(mutex_);
  // Takes the buffers of a record that is no longer needed: as spares, or to free them.
  void take_back(RecordData& data) EXCLUDES_LOCK(mutex_);
  // Whether a fetch would have to wait for room.
  bool is_full() const EXCLUDES_LOCK(mutex_);

  // The part of a record's bytes that counts towards the share.
  size_t counted(size_t bytes) const { return std::min(bytes, share_bytes_ / 2); }
  size_t held_bytes() const EXCLUDES_LOCK(mutex_);
  ReadCounts counts() const EXCLUDES_LOCK(mutex_);

 private:
  struct Neighbors;
  using NeighborsPtr = std::shared_ptr<Neighbors>;  // shared: with the read, which may outlive this
  // `number`: over all streams of this ReadAhead, so that none occurs twice.
  struct Entry {
    bool ready = false;
    int64_t index = -1;
    size_t bytes = 0;                      // held, or reserved for it
    RecordData data = {};                  // by a reader
    std::vector<StagedPiece> pieces = {};  // from an asynchronous storage
    int missing = 0;                       // of these
    bool failed = false;                   // a piece could not be read: its worker reads the record
    size_t arriving = 0;                   // the part of `bytes` reserved for missing pieces
    std::vector<PlannedPieces::Iterator> unsent = {};  // of its pieces
    std::vector<NeighborsPtr> sent = {};               // the requests of its other pieces
  };
  struct Inbox;

  int64_t end() const REQUIRES_LOCK(mutex_) { return base_ + count_ + (python_ ? 0 : beyond_); }
  size_t fetch_alone(int64_t number, int64_t index, RecordData& out, bool may_wait, double waited,
                     RowPosition row) EXCLUDES_LOCK(mutex_);
  void set_terms(size_t max_bytes, RecordData& out) const;
  void drop(int64_t below) REQUIRES_LOCK(mutex_);
  void pass_alone() REQUIRES_LOCK(mutex_);
  void drop_one(std::map<int64_t, Entry>::iterator entry) REQUIRES_LOCK(mutex_);
  void room_changed() REQUIRES_LOCK(mutex_);

  // By threads (read_ahead_threads.cc).
  void read_loop();
  bool begin_reads(std::vector<int64_t>& indices, std::vector<RecordData>& data)
      REQUIRES_LOCK(mutex_);
  void abandon_reads(int64_t first, size_t count) REQUIRES_LOCK(mutex_);
  bool put(int64_t number, RecordData data) REQUIRES_LOCK(mutex_);
  void note_read(double seconds, size_t bytes) REQUIRES_LOCK(mutex_);
  bool may_read_on() const REQUIRES_LOCK(mutex_);
  void wait_for_entry(int64_t number) REQUIRES_LOCK(mutex_);
  size_t take(int64_t number, RecordData& out) REQUIRES_LOCK(mutex_);
  static size_t fail_stopped(int64_t index, RecordData& out);
  void start_readers() REQUIRES_LOCK(mutex_);

  // By submitting (read_ahead_async.cc).
  size_t fetch_async(int64_t number, int64_t index, RecordData& out, bool may_wait, RowPosition row)
      EXCLUDES_LOCK(mutex_);
  bool prepare(int64_t index, RowPosition row, bool wait) const;
  RowPosition row_at(int64_t number) const REQUIRES_LOCK(mutex_) {
    return row_of_ ? row_of_(number - base_) : RowPosition();
  }
  void submit(int64_t needed) EXCLUDES_LOCK(mutex_);
  void claim_reads(int64_t needed, std::vector<NeighborsPtr>& out) REQUIRES_LOCK(mutex_);
  void claim_alone(int64_t number) REQUIRES_LOCK(mutex_);
  bool may_claim_on(int64_t depth) const REQUIRES_LOCK(mutex_);
  bool claim_read(bool needed) REQUIRES_LOCK(mutex_);
  void plan(FilePiece piece, size_t reserved, int64_t index, Entry& entry) REQUIRES_LOCK(mutex_);
  void prepare_further() REQUIRES_LOCK(mutex_);
  void send(PlannedPieces::Iterator piece, std::vector<NeighborsPtr>& out) REQUIRES_LOCK(mutex_);
  static ScatterRead read_of(const NeighborsPtr& neighbors, std::shared_ptr<Inbox> inbox);
  void arrived(Neighbors& neighbors, AsyncRead* read) EXCLUDES_LOCK(mutex_);
  bool arrived_for_others(const FilePiece& piece, const std::shared_ptr<Buffer>& memory)
      REQUIRES_LOCK(mutex_);

  const SourcePtr source_;
  const std::vector<bool> wanted_, by_range_;
  const size_t share_bytes_, max_bytes_;
  const double record_timeout_;
  const bool python_;                             // one reader, many records per call, always ahead
  const bool memory_;                             // never ahead
  const bool async_;                              // submitted, not read by threads
  const std::unique_ptr<const ClipReads> clips_;  // null: no field takes clips

  mutable Mutex mutex_;
  Condition changed_;
  std::function<int64_t(int64_t)> index_of_ GUARDED_BY(mutex_);
  std::function<RowPosition(int64_t)> row_of_ GUARDED_BY(mutex_);
  int64_t base_ GUARDED_BY(mutex_) = 0;  // number of the stream's sequence 0
  int64_t count_ GUARDED_BY(mutex_) = 0, beyond_ GUARDED_BY(mutex_) = 0;
  int64_t next_ GUARDED_BY(mutex_) = 0;  // first number whose reading has not begun
  int64_t sent_ GUARDED_BY(mutex_) = 0;  // first of these whose pieces are not all requested
  int64_t spread_ GUARDED_BY(mutex_) = 0, at_once_ GUARDED_BY(mutex_) = 0;
  PlannedPieces planned_ GUARDED_BY(mutex_);        // of entries, `unsent`
  SharedPieces shared_ GUARDED_BY(mutex_);          // of entries, and of records of workers
  bool have_neighbors_ GUARDED_BY(mutex_) = false;  // the records, in their files
  int64_t awaited_ GUARDED_BY(mutex_) = -1;         // last number that a worker waits for
  std::map<int64_t, Entry> entries_ GUARDED_BY(mutex_);
  // Numbers that must not be read ahead: fetched before there was room, or not at all. At least
  // next_; smaller ones are removed by pass_alone().
  std::set<int64_t> alone_ GUARDED_BY(mutex_);
  int wait_for_room_ GUARDED_BY(mutex_) = 0, wait_for_reads_ GUARDED_BY(mutex_) = 0;
  ReadShare share_ GUARDED_BY(mutex_);
  ReadDepth depth_ GUARDED_BY(mutex_);
  ReadCounts counts_ GUARDED_BY(mutex_);
  double mean_seconds_ GUARDED_BY(mutex_) = 0;
  bool ahead_ GUARDED_BY(mutex_) = false;  // readers shall run
  bool stopped_ GUARDED_BY(mutex_) = true, closing_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> abandoned_{false};  // for the reads of readers
  std::vector<std::thread> readers_ GUARDED_BY(mutex_);
  std::shared_ptr<Inbox> inbox_;  // shared: reads in progress outlive this
};

// Holds bytes of the share as long as it lives.
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
