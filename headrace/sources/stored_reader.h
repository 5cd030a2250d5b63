// SPDX-License-Identifier: Apache-2.0
// Reads records as they are stored, in batches: for measuring the speed of a source alone. Does not
// decode or copy. May be used from any thread; callers that read ahead provide the threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Valid while it is held; then its memory is reused.
struct StoredBatch {
  std::vector<RecordData> records;
  double read_seconds = 0;
};

class StoredReader {
 public:
  explicit StoredReader(SourcePtr source);

  // Each record has its own result. REQUIRES: all `numbers` are valid record numbers.
  std::shared_ptr<StoredBatch> read(std::span<const int64_t> numbers) const;
  const SourcePtr& source() const { return source_; }

 private:
  struct Spares;  // outlives the reader if a batch is still held

  const SourcePtr source_;
  const std::vector<bool> wanted_;
  const std::shared_ptr<Spares> spares_;
};

}  // namespace headrace
