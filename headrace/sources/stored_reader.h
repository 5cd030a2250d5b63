// SPDX-License-Identifier: Apache-2.0
// Reads records as they are stored, in batches: for measuring the speed of a source alone. Nothing
// is decoded and nothing is copied. May be used from any thread; who reads ahead brings the
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Valid for as long as it is held; then its memory is used again.
struct StoredBatch {
  std::vector<RecordData> records;
  double read_seconds = 0;
};

class StoredReader {
 public:
  explicit StoredReader(SourcePtr source);

  // Records carry their own results. REQUIRES: each of `numbers` is a record.
  std::shared_ptr<StoredBatch> read(std::span<const int64_t> numbers) const;
  const SourcePtr& source() const { return source_; }

 private:
  struct Spares;  // outlives the reader where a batch is kept

  const SourcePtr source_;
  const std::vector<bool> wanted_;
  const std::shared_ptr<Spares> spares_;
};

}  // namespace headrace
