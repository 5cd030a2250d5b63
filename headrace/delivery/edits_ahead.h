// SPDX-License-Identifier: Apache-2.0
// The edits of many rows (device_steps.h), computed by several threads, partly ahead of time.
//
//   take(rows): the consumer ──┐
//                              ├─ 64 rows at a time, each thread with its own steps ──> edits
//   the process's workers ─────┘
//
// A row's edit depends only on its position, so it is the same on any thread. Used by one thread.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/delivery/device_steps.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/sampling/batch_layout.h"

namespace headrace {

struct EditedRows {
  uint64_t seed = 0, epoch = 0;
  std::vector<BatchRange> positions;

  int64_t count() const;
  bool same_as(const EditedRows& other) const;
};

class EditsAhead final : private PoolClient {
 public:
  // threads: number of threads, including the calling one. shared: the steps, with the set that
  // uses them.
  // REQUIRES: the steps do not resize.
  EditsAhead(std::shared_ptr<DeviceSteps> steps, int threads);
  ~EditsAhead() override;
  EditsAhead(const EditsAhead&) = delete;
  EditsAhead& operator=(const EditsAhead&) = delete;

  struct Outcome {
    int64_t rows = 0;               // with edits: all, or those before the first failed row
    std::exception_ptr error = {};  // of that row
  };
  // Stores the edits of these rows in the outputs of the steps.
  Outcome take(const EditedRows& rows) EXCLUDES_LOCK(mutex_);
  // Announces that take() will be called with these rows, so that workers begin.
  void begin(const EditedRows& rows) EXCLUDES_LOCK(mutex_);

 private:
  struct Fill {
    bool is_seen = false;
    ChannelValues value{};
  };
  struct Job {
    EditedRows rows;
    int64_t count = 0, claimed = 0, done = 0;     // rows
    std::vector<std::vector<PictureEdit>> edits;  // by output, row
    std::vector<std::vector<Fill>> fills;         // by output, piece
    int64_t failed = INT64_MAX;                   // the first row
    std::exception_ptr error = {};
  };
  struct Piece {
    Job* job = nullptr;
    int64_t first = 0, rows = 0;
    std::unique_ptr<DeviceSteps> steps = {};
  };

  int max_workers() const override { return threads_ - 1; }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);
  bool open(const EditedRows& rows) EXCLUDES_LOCK(mutex_);
  void wake() EXCLUDES_LOCK(mutex_);
  bool claim(Piece& piece) REQUIRES_LOCK(mutex_);
  void make(Piece piece) EXCLUDES_LOCK(mutex_);
  static void fill(Piece& piece, int64_t& row);
  Outcome adopt(Job& job);

  const std::shared_ptr<DeviceSteps> steps_;
  const int threads_;
  Mutex mutex_;
  Condition progress_;
  std::unique_ptr<Job> job_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<DeviceSteps>> idle_ GUARDED_BY(mutex_);  // one per thread
  int active_ GUARDED_BY(mutex_) = 0;                                  // pieces that are being made
};

}  // namespace headrace
