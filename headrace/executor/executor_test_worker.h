// SPDX-License-Identifier: Apache-2.0
// For tests: a RecordWorker with everything that it uses, on the test's thread.
#pragma once

#include <atomic>
#include <span>
#include <utility>

#include "headrace/executor/record_worker.h"

namespace headrace::scopes_test {

// Python steps are called immediately.
class LentWorker final : public PythonCalls {
 public:
  static constexpr size_t kMiB = size_t{1} << 20;

  explicit LentWorker(RowTask given) : task(std::move(given)) {}

  void call(int step, std::span<PythonCall* const> calls) override {
    task.plan->steps()[size_t(step)].function->call(calls);
  }

  const RowTask task;
  const RecordOrder order{task};
  const RecordBytes bytes{*task.plan};
  MemoryGate gate{8 * kMiB, kMiB};
  ReadAhead reads{task.source, task.plan->wanted(), kMiB};
  PartnerCache kept{kMiB};
  std::atomic<uint64_t> freed{0};
  std::atomic<bool> stop{false};
  const RecordWorker worker{
      task, order, bytes, {kMiB, kMiB}, {gate, reads, kept, *this, freed, stop}};
};

}  // namespace headrace::scopes_test
