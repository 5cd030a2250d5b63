// SPDX-License-Identifier: Apache-2.0
// The executor: workers claim runs of records, take each record through the whole pipeline and
// write it into its row; batches are handed over in order.
//
// What happens to one record: record_worker.h. With Python steps a run stops there, crosses on the
// Python thread, and goes on. Locks: the engine's own, then a slot ring's or the pool's; never the
// other way round.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/bad_records.h"
#include "headrace/executor/batch/batch.h"
#include "headrace/executor/batch/foreseen_rows.h"
#include "headrace/executor/memory/kept_partners.h"
#include "headrace/executor/memory/memory_gate.h"
#include "headrace/executor/memory/memory_shares.h"
#include "headrace/executor/memory/record_bytes.h"
#include "headrace/executor/memory/slot_rings.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/executor/record_order.h"
#include "headrace/executor/record_run.h"
#include "headrace/executor/record_worker.h"
#include "headrace/executor/row_task.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

struct EngineOptions {
  RowTask task;
  int threads = 1;
  int python_workers = 0;  // as LoaderOptions has it
  size_t memory_limit = 0;
  std::function<void(const std::string&)> warn;
  DevicePtr device = {};         // that batches are copied to: slots are pinned for it
  double patience_seconds = 60;  // until `warn` hears what next() waits for; 0: never
};

// A batch that is being filled.
struct OpenBatch {
  BatchBuilder builder;
  int64_t first_sequence = 0;  // of row 0 in the stream
  int claimed = 0, done = 0;   // rows; the engine's lock guards these and all below
  RowFailures failures = {};
  std::vector<int> unsettled = {};  // rows by group, where there are batch steps
  int64_t warnings = 0;
  PictureRemarks remarks = {};
  size_t list_bytes = 0;      // of fields delivered as lists, which have no slot
  size_t foreseen_bytes = 0;  // of these, what was foreseen
  bool too_large = false;     // these alone exceed the share for them
  // Note [Who makes the tensors of ragged fields]
  enum class Assembly : uint8_t { kNone, kUnderWay, kDone } assembly = Assembly::kNone;
  size_t assembled_bytes = 0;  // that they take, as soon as it is known
  std::exception_ptr assembly_error = {};

  bool filled() const { return done == builder.rows(); }
};

struct EngineStats {
  int64_t batches = 0, records = 0, warnings = 0, copies = 0;
  PictureRemarks remarks;
  int64_t foreseen = 0;  // batches of ragged tensors that were there before their values
  double wait_seconds = 0, memory_wait_seconds = 0;  // of next(); of records for their memory
  StageSeconds stages;
  size_t memory_used = 0, memory_peak = 0;
  // Rows that crossed as they are delivered, where a device finishes the others, by reason.
  std::map<std::string_view, int64_t> finished_before = {};
};

class Engine final : public PoolClient {
 public:
  // Throws Exception when the memory limit is too small.
  Engine(EngineOptions options, BadRecords& bad_records);
  ~Engine() override;

  // Begins delivering with the given batch; ends whatever was under way.
  void start(int64_t epoch, int64_t batch, const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);
  // Returns when no worker is at a record any more. `interrupted`, called every 50 ms while it
  // waits, may throw; then a later start() or stop() goes on waiting.
  void stop(const std::function<void()>& interrupted = {}) EXCLUDES_LOCK(mutex_);
  // The next batch, or nothing after the epoch's last. Throws the batch's error.
  std::optional<Batch> next(const std::function<void()>& interrupted) EXCLUDES_LOCK(mutex_);
  // False when a batch was lost on its way to the consumer: start() again from there.
  bool delivers() const EXCLUDES_LOCK(mutex_);

  // One batch made here and now on the calling thread, in memory of its own.
  Batch make(int64_t epoch, int64_t batch);

  EngineStats stats() const EXCLUDES_LOCK(mutex_);
  const MemoryShares& shares() const { return shares_; }

  int max_workers() const override { return options_.threads; }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);

 private:
  // The engine's part on the Python thread.
  class PythonSide final : public PoolClient, public PythonCalls {
   public:
    explicit PythonSide(Engine& engine) : engine_(engine) {}
    int max_workers() const override { return std::max(1, engine_.options_.python_workers); }
    bool work(Renderer& renderer) override { return engine_.python_work(renderer); }
    void call(int step, std::span<PythonCall* const> calls) override;

   private:
    Engine& engine_;
  };

  // Claiming (engine.cc).
  std::unique_ptr<RecordRun> claim() EXCLUDES_LOCK(mutex_);
  bool may_grow_lists() const REQUIRES_LOCK(mutex_);
  bool work_on(std::unique_ptr<RecordRun>& run, Renderer& renderer) EXCLUDES_LOCK(mutex_);
  void note(RecordRun& run) EXCLUDES_LOCK(mutex_);
  std::vector<MixGroup> settled_groups(const RecordRun& run) EXCLUDES_LOCK(mutex_);
  void finish_run(std::unique_ptr<RecordRun>& run, Stands stands) EXCLUDES_LOCK(mutex_);
  void break_off(std::unique_ptr<RecordRun> run) noexcept EXCLUDES_LOCK(mutex_);
  std::unique_ptr<OpenBatch> await(const std::function<void()>& interrupted) EXCLUDES_LOCK(mutex_);
  std::string waits_for() const EXCLUDES_LOCK(mutex_);
  void consumer_arrives() EXCLUDES_LOCK(mutex_);
  Batch hand_over(OpenBatch& batch) EXCLUDES_LOCK(mutex_);
  RecordWorker worker_until(const std::atomic<bool>& stop);

  // Opening (engine_open_batch.cc).
  bool may_use_spare() const REQUIRES_LOCK(mutex_);
  bool open_batch() REQUIRES_LOCK(mutex_);
  void note_groups(OpenBatch& batch) const;

  // Assembly (engine_assembly.cc).
  bool awaits_assembly(const OpenBatch& batch) const REQUIRES_LOCK(mutex_);
  // The batch whose turn it is, which the caller shall assemble; or null.
  OpenBatch* begin_assembly() REQUIRES_LOCK(mutex_);
  void assemble(OpenBatch& batch) EXCLUDES_LOCK(mutex_);
  bool assemble_next() EXCLUDES_LOCK(mutex_);  // false: there is none whose turn it is
  void account_failures(OpenBatch& batch);
  void copy_slots_that_run_out(Batch& batch);

  // Python steps (engine_python_steps.cc).
  std::vector<std::unique_ptr<RecordRun>> take_python_share() EXCLUDES_LOCK(mutex_);
  ThreadPool& python_threads() const;
  bool python_work(Renderer& renderer) EXCLUDES_LOCK(mutex_);
  void cross(std::vector<std::unique_ptr<RecordRun>>& runs) EXCLUDES_LOCK(mutex_);

  const EngineOptions options_;
  const bool has_python_steps_, has_lists_, assembles_;
  const RecordOrder order_;
  const RecordBytes record_bytes_;
  BadRecords& bad_records_;
  MemoryShares shares_;
  MemoryGate gate_;
  ReadAhead read_ahead_;
  KeptPartners kept_;
  PythonSide python_side_;
  Mutex python_mutex_;  // one call into Python's functions at a time, unless
                        // it has workers
  const SlotRings rings_;
  BatchBuilder::OnDevice on_device_;
  std::atomic<bool> stopping_{false};  // records that have not begun need not begin
  std::atomic<uint64_t> freed_{0};     // counts records that gave memory back
  const RecordWorker worker_;

  const bool spares_memory_;  // Note [When the third buffer is used]

  mutable Mutex mutex_;
  Condition progress_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool consumer_waits_ GUARDED_BY(mutex_) = false;        // inside next()
  bool consumer_keeps_ GUARDED_BY(mutex_) = false;        // more than one batch when it came last
  int64_t epoch_ GUARDED_BY(mutex_) = -2;                 // none yet, nor the one after it
  int64_t next_open_ GUARDED_BY(mutex_) = 0;              // batch to open next
  int64_t next_sequence_ GUARDED_BY(mutex_) = 0;          // of its first row
  std::optional<Foresight> foreseen_ GUARDED_BY(mutex_);  // of its ragged fields, once known
  int64_t delivered_records_ GUARDED_BY(mutex_) = 0;      // of the epoch, all ranks; for the budget
  std::deque<std::unique_ptr<OpenBatch>> open_ GUARDED_BY(mutex_);
  size_t list_bytes_ GUARDED_BY(mutex_) = 0;                             // of open_
  size_t assembled_bytes_ GUARDED_BY(mutex_) = 0;                        // of open_
  int assembling_ GUARDED_BY(mutex_) = 0;                                // threads
  std::deque<std::unique_ptr<RecordRun>> continued_ GUARDED_BY(mutex_);  // back from Python
  std::deque<std::unique_ptr<RecordRun>> parked_ GUARDED_BY(mutex_);     // they lack memory
  std::vector<std::unique_ptr<RecordRun>> at_python_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RecordRun>> spare_ GUARDED_BY(mutex_);
  std::vector<const RecordRun*> active_ GUARDED_BY(mutex_);  // claimed and not finished
  std::exception_ptr broken_ GUARDED_BY(mutex_);             // what kept a worker from going on
  double record_seconds_ GUARDED_BY(mutex_) = 1e-4;          // running mean, for the length of runs
  EngineStats stats_ GUARDED_BY(mutex_);
  // Last: who leaves the pools first is asked for nothing while the rest goes.
  std::optional<Membership> at_workers_, at_python_threads_;
};

}  // namespace headrace
