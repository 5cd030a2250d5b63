// SPDX-License-Identifier: Apache-2.0
// Copies large tensors through staging memory to a device, in pieces: several threads write the
// pieces, and each is sent as soon as it and all earlier ones are complete.
//
//   ordinary memory ──pieces, several threads──> staging ──in order, one stream──> device
//
// One core copies memory at a fraction of the bandwidth of the bus to a device, and without pieces
// the first byte would be sent only after the last one was staged. The threads are the caller's and
// some of the process's workers, which are requested with the first large tensor. copy() is called
// by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/device/device.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

class StagingCopier final : private PoolClient {
 public:
  static constexpr size_t kPieceBytes = size_t{2} << 20;
  // At most 8, and at most half of the cores that this process may use.
  static int default_helpers();

  explicit StagingCopier(int helpers = default_helpers()) : helpers_(*this, helpers) {}
  StagingCopier(const StagingCopier&) = delete;
  StagingCopier& operator=(const StagingCopier&) = delete;

  // Returns when all of `from` has been read and all copies out of `staged` are queued. Throws
  // exceptions of the stream; by then no thread reads or writes these ranges, except for queued
  // copies.
  void copy(void* to, uint8_t* staged, const void* from, size_t bytes, Stream& stream)
      EXCLUDES_LOCK(mutex_);

 private:
  int max_workers() const override { return helpers_.most(); }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);

  bool stage_one() EXCLUDES_LOCK(mutex_);
  size_t wait_for_more_than(size_t queued) EXCLUDES_LOCK(mutex_);
  size_t bytes_in_front() REQUIRES_LOCK(mutex_);
  void abandon() EXCLUDES_LOCK(mutex_);

  Mutex mutex_;
  Condition staged_one_;
  // Staging memory of the tensor that is being copied; unused if bytes_ is 0.
  uint8_t* staged_ GUARDED_BY(mutex_) = nullptr;
  const uint8_t* from_ GUARDED_BY(mutex_) = nullptr;
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  size_t claimed_ GUARDED_BY(mutex_) = 0, front_ GUARDED_BY(mutex_) = 0;  // pieces
  std::vector<bool> is_staged_ GUARDED_BY(mutex_);                        // by piece
  int active_ GUARDED_BY(mutex_) = 0;  // pieces that are being written

  Helpers helpers_;
};

}  // namespace headrace
