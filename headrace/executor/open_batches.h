// SPDX-License-Identifier: Apache-2.0
// The batches that are being filled. Workers claim runs of their rows, in order; a batch is opened
// when it has slots, its ragged tensors are made when its last row is written, and the consumer
// gets the batches in order. Holds the executor's main lock, which is taken a few times per run and
// does not protect the records.
//
// Lock order: this object's lock, then that of a slot ring. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/batch/batch.h"
#include "headrace/executor/batch/batch_builder.h"
#include "headrace/executor/batch/predicted_rows.h"
#include "headrace/executor/engine_stats.h"
#include "headrace/executor/lent_rows.h"
#include "headrace/executor/memory/memory_shares.h"
#include "headrace/executor/memory/slot_rings.h"
#include "headrace/executor/memory/value_pool.h"
#include "headrace/executor/record_order.h"
#include "headrace/executor/record_run.h"
#include "headrace/executor/row_task.h"
#include "headrace/executor/runs.h"

namespace headrace {

// Counters of a batch while it is filled.
class BatchLedger {
 public:
  // Failures of a batch that await() has returned.
  RowFailures& failures() { return failures_; }
  const std::exception_ptr& assembly_error() const { return assembly_error_; }

 private:
  friend class OpenBatches;     // its lock guards all members until await() returns
  int64_t first_sequence_ = 0;  // of row 0 in the stream
  int claimed_ = 0, done_ = 0;  // rows
  int lent_from_ = 0;           // first row that is lent, was lent, or is after the last
  RowFailures failures_;
  std::vector<int> unsettled_;  // rows by group, if there are batch steps
  int64_t warnings_ = 0;
  PictureRemarks remarks_;
  size_t list_bytes_ = 0;       // of fields delivered as lists, which have no slot
  size_t predicted_bytes_ = 0;  // the predicted part of list_bytes_
  bool too_large_ = false;      // its lists alone exceed their budget
  // Note [Who makes the tensors of ragged fields]
  enum class Assembly : uint8_t { kNone, kUnderWay, kDone } assembly_ = Assembly::kNone;
  size_t assembled_bytes_ = 0;  // their size, once known
  std::exception_ptr assembly_error_;
};

struct OpenBatch {
  // Its rows belong to the workers that write them, the whole to the thread that assembles it.
  BatchBuilder builder;
  BatchLedger ledger = {};
};

class OpenBatches {
 public:
  struct Makers {
    int threads = 1;
    int python_workers = 0;  // 0 also without Python steps
    bool to_device = false;  // batches are copied to a device, and hold their slots until then
    bool lends = false;      // rows may be made elsewhere
    // Tells the threads that there may be work. Called without the lock.
    std::function<void()> wake;
  };
  // The referenced objects must outlive it.
  OpenBatches(const RowTask& task, const RecordOrder& order, const SlotRings& rings,
              const MemoryShares& shares, Makers makers);

  // --- The stream ---
  // Begins the stream at this batch. True if that continues the previous stream. REQUIRES: idle.
  bool begin(int64_t epoch, int64_t batch) EXCLUDES_LOCK(mutex_);
  void go() EXCLUDES_LOCK(mutex_);   // rows may be claimed from now on
  void end() EXCLUDES_LOCK(mutex_);  // no rows are claimed from now on
  bool delivers() const EXCLUDES_LOCK(mutex_);
  // Waits for a change, at most for this time. True if no run is claimed, no rows are arriving, and
  // nothing is being assembled.
  bool wait_idle(std::chrono::milliseconds time) EXCLUDES_LOCK(mutex_);
  void clear() EXCLUDES_LOCK(mutex_);  // REQUIRES: idle

  // --- Workers ---
  // A run to work on: one that is back from Python, else one that lacked memory, else new rows.
  // Null if there is none now.
  std::unique_ptr<RecordRun> claim() EXCLUDES_LOCK(mutex_);
  // Takes from the run's report what others must know immediately: the memory of lists, and failed
  // rows. Allocates nothing, so that abandoned runs are reported, too.
  void note(RecordRun& run) EXCLUDES_LOCK(mutex_);
  // The groups of batch steps that the run has completed. REQUIRES: all its rows are settled;
  // called once per run.
  std::vector<MixGroup> settle_groups(const RecordRun& run) EXCLUDES_LOCK(mutex_);
  // Takes the rest of the report, and the run itself unless it goes to Python. Assembles the batch
  // if it is now full.
  void finish(std::unique_ptr<RecordRun>& run, RunOutcome stands) EXCLUDES_LOCK(mutex_);
  // Python begins with these runs.
  void enter_python(const std::vector<std::unique_ptr<RecordRun>>& runs) EXCLUDES_LOCK(mutex_);
  // Takes back runs whose Python steps have been called.
  void go_on(std::vector<std::unique_ptr<RecordRun>>& runs, double python_seconds)
      EXCLUDES_LOCK(mutex_);
  // Abandons the run (may be null); the consumer gets the error.
  void abandon(std::unique_ptr<RecordRun> run, std::exception_ptr error) noexcept
      EXCLUDES_LOCK(mutex_);
  bool assemble_next() EXCLUDES_LOCK(mutex_);  // false: no batch is due

  // --- Rows that are made elsewhere (lent_rows.cc) ---
  // Lends up to `most` unclaimed rows (or one group, if that is larger), from the end of the open
  // batches; nothing if all are claimed. They belong to the caller until they arrive or are
  // recalled: by recall(), or when the consumer has waited for them longer than the patience.
  std::optional<LentRows> lend(int most, double patience_seconds) EXCLUDES_LOCK(mutex_);
  // Writes lent rows. False if the loan was recalled; then nothing was written. Throws Exception
  // HR0713 if the bytes do not have the sizes of these rows.
  bool arrive(int64_t number, RowsResult made, const RowBytes& bytes) EXCLUDES_LOCK(mutex_);
  // Returns the rows to the workers; does nothing if they have arrived.
  void recall(int64_t number) EXCLUDES_LOCK(mutex_);
  bool is_out(int64_t number) const EXCLUDES_LOCK(mutex_);

  // --- The consumer ---
  struct Waiting {
    const std::function<void()>& interrupted;       // called every 50 ms; may throw
    double patience_seconds = 0;                    // 0: no limit
    std::function<void(double seconds)> impatient;  // called once, after patience_seconds
  };
  // The next batch with all its rows; null after the epoch's last. Throws if it cannot be
  // completed.
  std::unique_ptr<OpenBatch> await(const Waiting& waiting) EXCLUDES_LOCK(mutex_);
  // What await() would act on now, without waiting.
  struct Look {
    enum class Kind : uint8_t { kNotYet, kEnd, kBatch, kAssemble } kind = Kind::kNotYet;
    std::unique_ptr<OpenBatch> batch = {};
    OpenBatch* to_assemble = nullptr;
  };
  Look look() EXCLUDES_LOCK(mutex_);
  // Counts the batch made from `open`; from now on its memory is the consumer's, not the loader's.
  void leave(const OpenBatch& open, const Batch& batch) EXCLUDES_LOCK(mutex_);
  int open() const EXCLUDES_LOCK(mutex_);

  // What workers are doing now, to explain to a waiting consumer.
  std::vector<RunStatus> doing() const EXCLUDES_LOCK(mutex_);
  // The counters kept here, including memory of lists, of tensors made from them, and unused
  // memory.
  EngineStats stats() const EXCLUDES_LOCK(mutex_);

 private:
  using Assembly = BatchLedger::Assembly;
  bool may_grow_lists() const REQUIRES_LOCK(mutex_);
  bool may_use_spare() const REQUIRES_LOCK(mutex_);
  bool open_next() REQUIRES_LOCK(mutex_);
  OpenBatch* next_to_claim() REQUIRES_LOCK(mutex_);
  std::unique_ptr<RecordRun> new_run(OpenBatch& batch, int first, int most, bool streamed)
      REQUIRES_LOCK(mutex_);
  void recall_expired() EXCLUDES_LOCK(mutex_);
  bool any_arrives() const REQUIRES_LOCK(mutex_);
  static bool is_filled(const OpenBatch& batch) {
    return batch.ledger.done_ == batch.builder.rows();
  }
  bool awaits_assembly(const OpenBatch& batch) const REQUIRES_LOCK(mutex_);
  // The batch that is due for assembly by the caller; or null.
  OpenBatch* begin_assembly() REQUIRES_LOCK(mutex_);
  void assemble(OpenBatch& batch) EXCLUDES_LOCK(mutex_);
  void consumer_arrives() EXCLUDES_LOCK(mutex_);
  bool is_first_ready() const REQUIRES_LOCK(mutex_);
  Look look_now() REQUIRES_LOCK(mutex_);

  const RowTask& task_;
  const RecordOrder& order_;
  const SlotRings& rings_;
  const MemoryShares& shares_;
  const Makers makers_;
  const bool has_lists_, assembles_;
  const bool spares_memory_;  // Note [When the third buffer is used]
  const BatchBuilder::OnDevice on_device_;
  ValuePool values_;  // of fields delivered as lists, and of tensors made from them

  mutable Mutex mutex_;
  Condition progress_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool consumer_waits_ GUARDED_BY(mutex_) = false;  // inside await()
  bool consumer_keeps_ GUARDED_BY(mutex_) = false;  // held more than one batch at its last call
  int64_t epoch_ GUARDED_BY(mutex_) = -2;           // so that no first epoch continues it
  int64_t next_open_ GUARDED_BY(mutex_) = 0;        // batch to open next
  int64_t next_sequence_ GUARDED_BY(mutex_) = 0;    // of its first row
  std::optional<Prediction> predicted_ GUARDED_BY(mutex_);  // its ragged fields, once computed
  std::deque<std::unique_ptr<OpenBatch>> open_ GUARDED_BY(mutex_);
  size_t list_bytes_ GUARDED_BY(mutex_) = 0;       // of open_
  size_t assembled_bytes_ GUARDED_BY(mutex_) = 0;  // of open_
  int assembling_ GUARDED_BY(mutex_) = 0;          // threads
  Runs runs_ GUARDED_BY(mutex_);
  struct Loan {
    OpenBatch* of = nullptr;
    int first = 0, count = 0;
    double due = 0;        // when the consumer stops waiting for it
    bool arrives = false;  // a thread is writing its rows
  };
  std::map<int64_t, Loan> lent_ GUARDED_BY(mutex_);  // by number
  std::deque<Loan> recalled_ GUARDED_BY(mutex_);     // for workers to make
  std::exception_ptr broken_ GUARDED_BY(mutex_);     // the exception that stopped a worker
  EngineStats stats_ GUARDED_BY(mutex_);
};

}  // namespace headrace
