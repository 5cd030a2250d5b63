// SPDX-License-Identifier: Apache-2.0
// Records that wait for a Python step: runs stop at such a step, are passed to the Python thread
// with all others that wait there, and continue. If Python has workers (processes), a separate
// thread waits for each and takes a part of the runs.
//
// Locks: its two locks are taken while no other is held; Python is called under call_mutex_.
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/open_batches.h"
#include "headrace/executor/record_worker.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

class PythonStepRunner final : public PoolClient, public PythonCalls {
 public:
  // `wake`: tells the workers that runs are back. Once `stop` is set, Python is no longer called.
  PythonStepRunner(const RowTask& task, OpenBatches& batches, int workers,
                   std::function<void()> wake, const std::atomic<bool>& stop);

  ThreadPool& threads() const;  // for calls to Python
  // Takes the run, or throws and leaves it to the caller.
  void add(std::unique_ptr<RecordRun>& run) EXCLUDES_LOCK(mutex_);
  // Calls the step for these records now: one call at a time, unless Python has worker processes.
  void call(int step, std::span<PythonCall* const> calls) override EXCLUDES_LOCK(call_mutex_);

  int max_workers() const override { return std::max(1, workers_); }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);

 private:
  using Runs = std::vector<std::unique_ptr<RecordRun>>;
  void take_share(Runs& runs) EXCLUDES_LOCK(mutex_);
  void cross(Runs& runs);

  const RowTask& task_;
  OpenBatches& batches_;
  const int workers_;
  const std::function<void()> wake_;
  const std::atomic<bool>& stop_;
  Mutex call_mutex_;
  Mutex mutex_;
  Runs waiting_ GUARDED_BY(mutex_);
};

}  // namespace headrace
