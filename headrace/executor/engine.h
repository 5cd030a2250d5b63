// SPDX-License-Identifier: Apache-2.0
// The executor: workers claim runs of rows, make each row from its record and any records mixed
// into it, and batches are delivered in order. The engine owns the parts and is their main loop:
//
//   OpenBatches ── a run of rows ──> RecordWorker ── record ──> [Partners] ──> ReadAhead
//        ^                                │ rows, written              (waits for a step in Python:
//        └──────── a report ──────────────┴─────> BatchBuilder           PythonStepRunner)
//
// RecordOrder determines the record that a row is made from, MemoryGate how much memory it may use.
// Locks: each part has its own; the lock of OpenBatches is taken before that of a slot ring or of
// the pool, never after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/executor/bad_records.h"
#include "headrace/executor/batch/batch.h"
#include "headrace/executor/engine_stats.h"
#include "headrace/executor/lent_rows.h"
#include "headrace/executor/memory/memory_gate.h"
#include "headrace/executor/memory/memory_shares.h"
#include "headrace/executor/memory/partner_cache.h"
#include "headrace/executor/memory/record_bytes.h"
#include "headrace/executor/memory/slot_rings.h"
#include "headrace/executor/open_batches.h"
#include "headrace/executor/python_step_runner.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/executor/record_order.h"
#include "headrace/executor/record_worker.h"
#include "headrace/executor/row_task.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

struct EngineOptions {
  RowTask task;
  int threads = 1;
  int python_workers = 0;  // see LoaderOptions
  size_t memory_limit = 0;
  std::function<void(const std::string&)> warn;
  DevicePtr device = {};         // target of copies: slots are pinned for it
  double patience_seconds = 60;  // until `warn` reports what next() waits for; 0: never
  double record_timeout = 0;     // see LoaderOptions
  bool on_demand = false;        // batches only by make(): no thread is started
  bool lends = false;            // rows may be made elsewhere; REQUIRES: why_not_lent() is empty
};

// Why rows of such batches cannot be made elsewhere, as a clause; empty if they can.
std::string why_not_lent(const RowTask& task);

class Engine final : public PoolClient {
 public:
  // Throws Exception if the memory limit is too small.
  Engine(EngineOptions options, BadRecords& bad_records);
  ~Engine() override;

  // Starts delivering with the given batch; ends the current run. REQUIRES: not on_demand.
  void start(int64_t epoch, int64_t batch, const std::function<void()>& interrupted = {});
  // Returns when no worker holds a record any more. `interrupted`, called every 50 ms while it
  // waits, may throw; then a later start() or stop() continues to wait.
  void stop(const std::function<void()>& interrupted = {});
  // The next batch, or nothing after the epoch's last. Throws the batch's error.
  std::optional<Batch> next(const std::function<void()>& interrupted);
  // False if a batch was lost on its way to the consumer: call start() again with that batch.
  bool delivers() const { return batches_.delivers(); }

  // One batch, made immediately on the calling thread, in separate memory.
  Batch make(int64_t epoch, int64_t batch);

  // Makes rows of a batch for another engine, on the calling thread; `memory` is called once per
  // output. Throws if a failure may be this machine's (may_succeed_elsewhere): that engine then
  // makes the rows.
  RowsResult make_rows(const RowsRequest& rows, const BatchRows::Memory& memory);
  // Rows that other engines make for this one; callable from any thread. See OpenBatches.
  std::optional<LentRows> rows_ahead(int most, double patience_seconds);
  bool rows_arrived(int64_t number, RowsResult made, const RowBytes& bytes) {
    return batches_.arrive(number, std::move(made), bytes);
  }
  void rows_returned(int64_t number) { batches_.recall(number); }
  bool rows_are_out(int64_t number) const { return batches_.is_out(number); }

  EngineStats stats() const;
  const MemoryShares& shares() const { return shares_; }

  int max_workers() const override { return options_.threads; }
  bool work(Renderer& renderer) override;

 private:
  RecordWorker make_worker(const std::atomic<bool>& stop);
  Batch hand_over(OpenBatch& open);
  void copy_scarce_slots(Batch& batch);

  const EngineOptions options_;
  BadRecords& bad_records_;
  const RecordOrder order_;
  const RecordBytes record_bytes_;
  const MemoryShares shares_;
  MemoryGate gate_;
  ReadAhead read_ahead_;
  PartnerCache kept_;
  const SlotRings rings_;
  std::atomic<bool> stopping_{false};  // records that have not been started are not started
  std::atomic<uint64_t> freed_{0};     // counts records that gave memory back
  std::atomic<int64_t> copies_{0};     // copies made because the consumer held all slots
  OpenBatches batches_;
  PythonStepRunner python_steps_;
  const RecordWorker worker_;
  // Last, so destroyed first: no pool thread may call this object while its other members are
  // destroyed.
  std::optional<Membership> at_workers_, at_python_threads_;
};

}  // namespace headrace
