// SPDX-License-Identifier: Apache-2.0
// Shared by the files of ReadAhead.
#pragma once

#include <malloc.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "headrace/executor/reading/read_ahead.h"

namespace headrace {

// Readers start when reads take longer than kSlowSeconds on average, waiting for a device, and stop
// when they take less than kFastSeconds.
inline constexpr double kSlowSeconds = 60e-6, kFastSeconds = 20e-6;

// Number of voluntary context switches of this thread. A read from the page cache causes none;
// unlike time, this does not include preemption on a busy machine.
long waits_of_this_thread();

// Receives reads, even after their ReadAhead is destroyed: then the requests in flight end early,
// and the last one returns the memory.
struct ReadAhead::Inbox {
  ~Inbox() {
    // Otherwise the heaps keep the memory of thousands of small buffers.
    if (!unneeded.stop_possible()) (void)malloc_trim(0);
  }
  // The reads so far are no longer needed; new ones get the tokens of `next`.
  void end_reads(std::stop_source next) EXCLUDES_LOCK(mutex) {
    {
      MutexLock lock(mutex);
      std::swap(next, unneeded);
    }
    (void)next.request_stop();  // without the lock, because reads may end at once
  }
  std::stop_token token() EXCLUDES_LOCK(mutex) {
    MutexLock lock(mutex);
    return unneeded.get_token();
  }

  Mutex mutex;
  ReadAhead* owner GUARDED_BY(mutex) = nullptr;
  std::stop_source unneeded GUARDED_BY(mutex);
};

// Pieces of several records in a single read, which is canceled once no record needs it.
struct ReadAhead::Neighbors {
  struct Part {
    int64_t number = 0;
    FilePiece piece;
    size_t reserved = 0;
    // shared: with the entry that gets it. Allocated separately, so that it is freed when the
    // record has been taken.
    std::shared_ptr<Buffer> memory = {};
    bool shared = false;  // `memory` has another reader, or is read twice
  };
  FilePiece whole;
  uint64_t max_bytes = SIZE_MAX;
  double submitted = 0;
  std::vector<Part> parts;
  size_t needed = 0;  // parts of records that are not dropped; guarded by ReadAhead::mutex_
  std::stop_source unneeded = {};
  std::optional<std::stop_callback<std::function<void()>>> on_closing = {};  // Inbox::unneeded
};

}  // namespace headrace
