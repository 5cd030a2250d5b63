// SPDX-License-Identifier: Apache-2.0
// The executor: workers claim runs of records, take each record through the whole pipeline and
// write it into its row; batches are handed over in order.
//
// Data flow of one record: sampler -> read-ahead -> Plan::begin -> Plan::advance -> memory gate ->
// BatchBuilder::write. With Python steps a run stops there, crosses on the Python thread, and goes
// on. Locks: the engine's own, then a slot ring's or the pool's; never the other way round.
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
  class PythonSide final : public PoolClient {
   public:
    explicit PythonSide(Engine& engine) : engine_(engine) {}
    int max_workers() const override { return std::max(1, engine_.options_.python_workers); }
    bool work(Renderer& renderer) override { return engine_.python_work(renderer); }

   private:
    Engine& engine_;
  };

  // Claiming (engine.cc).
  std::unique_ptr<RecordRun> claim() EXCLUDES_LOCK(mutex_);
  void announce(const OpenBatch& batch) const;
  bool may_grow_lists() const REQUIRES_LOCK(mutex_);
  bool work_on(std::unique_ptr<RecordRun>& run, Renderer& renderer) EXCLUDES_LOCK(mutex_);
  bool finish_run(std::unique_ptr<RecordRun>& run, int settled, double seconds,
                  const StageSeconds& stages, const PictureRemarks& remarks) EXCLUDES_LOCK(mutex_);
  void break_off(std::unique_ptr<RecordRun> run) noexcept EXCLUDES_LOCK(mutex_);
  std::unique_ptr<OpenBatch> await(const std::function<void()>& interrupted) EXCLUDES_LOCK(mutex_);
  std::string waits_for() const EXCLUDES_LOCK(mutex_);
  void consumer_arrives() EXCLUDES_LOCK(mutex_);
  Batch hand_over(OpenBatch& batch) EXCLUDES_LOCK(mutex_);

  // Opening (engine_open_batch.cc).
  bool may_use_spare() const REQUIRES_LOCK(mutex_);
  bool open_batch() REQUIRES_LOCK(mutex_);

  // Assembly (engine_assembly.cc).
  bool awaits_assembly(const OpenBatch& batch) const REQUIRES_LOCK(mutex_);
  // The batch whose turn it is, which the caller shall assemble; or null.
  OpenBatch* begin_assembly() REQUIRES_LOCK(mutex_);
  void assemble(OpenBatch& batch) EXCLUDES_LOCK(mutex_);
  bool assemble_next() EXCLUDES_LOCK(mutex_);  // false: there is none whose turn it is
  void account_failures(OpenBatch& batch);
  void copy_slots_that_run_out(Batch& batch);

  // Processing (engine_process.cc).
  int process(RecordRun& run, Renderer& renderer);
  void begin_record(RecordRun& run, int i, Renderer& renderer, bool may_wait);
  void read_record(const OpenBatch& batch, int row, InFlight& flight, bool may_wait);
  Result<int> apply_steps(int step, Record& record, Renderer& renderer, uint64_t epoch,
                          int end = -1);
  bool reserve_early(RecordRun& run, int i);
  void advance_record(RecordRun& run, int i, Renderer& renderer, bool together = false);
  void write_records(RecordRun& run, int first, int count, Renderer& renderer);
  void fail_by_exception(RecordRun& run, int first, int count);
  // `blamed`: the record that is bad, where it is not the row's own.
  void fail(RecordRun& run, int i, Error error, int64_t blamed = -1);
  void settle(RecordRun& run, int i);
  void give_back(InFlight& flight);
  size_t bytes_to_write(const InFlight& flight) const;
  size_t bytes_until_written(const InFlight& flight) const;

  // Groups (engine_groups.cc).
  int process_group(RecordRun& run, int first, Renderer& renderer);
  int begin_group(RecordRun& group, Renderer& renderer);
  void advance_group(RecordRun& group, int taken, Renderer& renderer);
  void substitute_bad(RecordRun& group, int taken, Renderer& renderer);

  // Partners (engine_partners.cc).
  void read_partners(const OpenBatch& batch, int row, InFlight& flight);
  // On an error `blamed` is the partner that is bad.
  Result<void> begin_partners(std::span<const PartnerRead> reads, Record& record,
                              Renderer& renderer, int64_t& blamed);
  Result<void> advance_partners(std::span<const PartnerRead> reads, Record& record,
                                Renderer& renderer, uint64_t epoch, bool keeps, int64_t& blamed);
  // To where a near partner step's preparation leaves it, at which step it then stands. `keeps`:
  // for others to find, and finds what others have left.
  Result<int> prepare(Record& record, Renderer& renderer, uint64_t epoch, bool keeps);
  bool take_kept(const KeptPartner* kept, Record& record) const;
  void keep(uint64_t epoch, const Record& record, size_t reserved);

  // Batch steps (engine_batch_steps.cc).
  void note_groups(OpenBatch& batch) const;
  void finish_groups(RecordRun& run, Renderer& renderer) EXCLUDES_LOCK(mutex_);
  bool is_settled(const RecordRun& run) const;

  // Records apart from runs (engine_single_rows.cc).
  Result<void> make_row(OpenBatch& batch, int row, int attempt, Renderer& renderer,
                        int64_t& blamed);
  bool substitute(OpenBatch& batch, int row, RowFailure& failure, Renderer& renderer);
  Result<void> call_python_inline(int step, Record& record, uint64_t epoch, Renderer& renderer);

  // Python steps (engine_python_steps.cc).
  int process_with_python(RecordRun& run, Renderer& renderer);
  void go_on_with_python(RecordRun& run, int i, Renderer& renderer);
  void return_from_python(RecordRun& run, int i);
  bool reserve_now(RecordRun& run, int i);
  std::vector<std::unique_ptr<RecordRun>> take_python_share() EXCLUDES_LOCK(mutex_);
  void call_python(int step, std::span<PythonCall* const> calls);
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
