// SPDX-License-Identifier: Apache-2.0
// Shared by the files of ReadAhead.
#pragma once

#include <memory>
#include <vector>

#include "headrace/executor/reading/read_ahead.h"

namespace headrace {

// Reads that wait this long for a device on average are worth readers; those that hardly do, not.
inline constexpr double kSlowSeconds = 60e-6, kFastSeconds = 20e-6;

// How often this thread has given up the processor to wait. A read from the page cache never does,
// and being preempted on a busy machine does not count, as time would.
long waits_of_this_thread();

// Where reads arrive, also after their ReadAhead has gone.
struct ReadAhead::Inbox {
  Mutex mutex;
  ReadAhead* owner GUARDED_BY(mutex) = nullptr;
};

// Pieces of several records that one read brings.
struct ReadAhead::Neighbors {
  struct Part {
    int64_t number = 0;
    FilePiece piece;
    size_t reserved = 0;
    // shared: with the entry that gets it. Of its own, so that it goes when the record was taken.
    std::shared_ptr<Buffer> memory = {};
  };
  FilePiece whole;
  uint64_t max_bytes = SIZE_MAX;
  double submitted = 0;
  std::vector<Part> parts;
};

}  // namespace headrace
