// SPDX-License-Identifier: Apache-2.0
// Records as they are stored, read ahead by threads in a given order and handed over in batches:
// how fast a source is by itself. Nothing is decoded and nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/sources/source.h"

namespace headrace {

// Valid for as long as it is held; then its memory is used again.
struct StoredBatch {
  int64_t number = 0;
  std::vector<RecordData> records;
  double read_seconds = 0;
};

class RecordStream {
 public:
  // `order`: the records of an epoch. Reads are begun for at most `depth` batches that were not
  // handed over. REQUIRES: each of `order` is a record; batch_size, threads, depth > 0.
  RecordStream(SourcePtr source, std::vector<int64_t> order, int64_t batch_size, int threads,
               int64_t depth);
  ~RecordStream();

  // Begins an epoch. What a former one had read is dropped.
  void start() EXCLUDES_LOCK(mutex_);
  // The next batch; null at the end of the epoch. Records carry their own results; throws what kept
  // a thread from reading them. `interrupted`, called every 50 ms while it waits, may throw.
  std::shared_ptr<StoredBatch> next(const std::function<void()>& interrupted = {})
      EXCLUDES_LOCK(mutex_);

  int64_t batches() const;
  const SourcePtr& source() const { return source_; }

 private:
  struct Spares;  // outlives the stream where a batch is kept

  void end_threads();
  void read_loop();
  void read_batch(int64_t number, StoredBatch& out) const;
  bool may_begin() const REQUIRES_LOCK(mutex_);

  const SourcePtr source_;
  const std::vector<int64_t> order_;
  const int64_t batch_size_, depth_;
  const std::vector<bool> wanted_;
  const std::shared_ptr<Spares> spares_;

  Mutex mutex_;
  Condition changed_;
  int64_t epoch_ GUARDED_BY(mutex_) = 0;
  int64_t begun_ GUARDED_BY(mutex_) = 0, taken_ GUARDED_BY(mutex_) = 0;
  bool running_ GUARDED_BY(mutex_) = false, closing_ GUARDED_BY(mutex_) = false;
  std::map<int64_t, std::shared_ptr<StoredBatch>> ready_ GUARDED_BY(mutex_);
  std::exception_ptr failure_ GUARDED_BY(mutex_);  // ends the epoch
  std::vector<std::thread> threads_;
};

}  // namespace headrace
