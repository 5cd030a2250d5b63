// SPDX-License-Identifier: Apache-2.0
// Shared by the files of ReadAhead.
#pragma once

#include <malloc.h>

#include <memory>
#include <stop_token>
#include <vector>

#include "headrace/executor/reading/read_ahead.h"

namespace headrace {

// If reads wait this long for a device on average, readers are worthwhile; if they hardly wait,
// not.
inline constexpr double kSlowSeconds = 60e-6, kFastSeconds = 20e-6;

// How often this thread has yielded the processor to wait. A read from the page cache never does;
// unlike time, this does not count preemption on a busy machine.
long waits_of_this_thread();

// Receives reads, also after their ReadAhead is gone: then the requests in flight end early, and the
// last one returns the memory.
struct ReadAhead::Inbox {
  ~Inbox() {
    // Otherwise the heaps keep the memory of thousands of small buffers.
    if (unneeded.stop_requested()) (void)malloc_trim(0);
  }
  Mutex mutex;
  ReadAhead* owner GUARDED_BY(mutex) = nullptr;
  std::stop_source unneeded;
};

// Pieces of several records in a single read.
struct ReadAhead::Neighbors {
  struct Part {
    int64_t number = 0;
    FilePiece piece;
    size_t reserved = 0;
    // shared: with the entry that gets it. Allocated separately, so that it is freed when the
    // record was taken.
    std::shared_ptr<Buffer> memory = {};
    bool shared = false;  // `memory` has another reader, or is read twice
  };
  FilePiece whole;
  uint64_t max_bytes = SIZE_MAX;
  double submitted = 0;
  std::vector<Part> parts;
};

}  // namespace headrace
