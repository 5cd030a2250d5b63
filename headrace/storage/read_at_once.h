// SPDX-License-Identifier: Apache-2.0
// Prefetches ranges of a file with one request each, all at once, if its storage is asynchronous:
// while this object exists, reads of these ranges on this thread are served from memory. Useful for
// structures of many small parts that are close together. Does nothing for local files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/storage/async_storage.h"
#include "headrace/storage/file.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {

class ReadAtOnce {
 public:
  static constexpr uint64_t kMax = uint64_t{64} << 20;

  struct Range {
    uint64_t offset, bytes;
  };
  // Ranges above kMax or with errors are not staged: the later reads request them again.
  ReadAtOnce(const File& file, std::vector<Range> ranges) {
    if (!file.is_async()) return;
    std::vector<AsyncRead> reads;
    for (const Range& range : ranges) {
      if (range.bytes == 0 || range.bytes > kMax) continue;
      reads.push_back({.piece = file.piece(range.offset, range.bytes)});
    }
    for (AsyncRead& read : read_and_wait(storage_of(file.path()), std::move(reads))) {
      if (!read.result) continue;
      const auto memory = std::make_shared<Buffer>(std::move(read.bytes));
      pieces_.push_back(
          {.piece = std::move(read.piece), .bytes = memory->bytes(), .memory = memory});
    }
    if (!pieces_.empty()) staged_.emplace(pieces_);
  }

 private:
  std::vector<StagedPiece> pieces_;
  std::optional<StagedReads> staged_;
};

}  // namespace headrace
